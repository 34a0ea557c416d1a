"""A kernel with a real bug, as source and as the PTX that nvcc made of it: what `ptxlint demo` lints."""
