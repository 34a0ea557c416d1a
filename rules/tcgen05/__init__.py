"""Rules of family 6xx: tcgen05 and tensor memory."""
