"""Rules of family 7xx: barriers of the CTA and of the cluster."""
