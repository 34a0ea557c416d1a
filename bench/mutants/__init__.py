"""Mutants: each synchronization instruction of a clean kernel dropped or weakened, one at a time, then linted."""
