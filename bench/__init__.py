"""Measurements of ptxlint on code that nobody here wrote: corpus, speed, mutants."""
