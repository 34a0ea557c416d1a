"""Rules of family 3xx: accesses by different proxies and the fences between them."""
