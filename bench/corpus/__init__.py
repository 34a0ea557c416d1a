"""Real PTX modules built from pinned PyPI packages, kept in a cache folder outside the repository."""
