"""The execution engine piece by piece, on short snippets of PTX."""
