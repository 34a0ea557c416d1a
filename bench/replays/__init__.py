"""Replayed bugs: kernels of ours after public bug reports, before and after the fix."""
