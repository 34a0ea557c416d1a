"""Rules of family 5xx: wgmma, its groups and its registers."""
