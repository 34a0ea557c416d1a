"""Runs the fixture kernels on a GPU and records what testing and the sanitizer see of each fault."""
