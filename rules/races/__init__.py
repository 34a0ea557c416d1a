"""Rules of family 9xx: accesses that nothing orders."""
