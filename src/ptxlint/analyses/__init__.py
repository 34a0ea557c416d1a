"""What is computed over the control-flow graph: one file per analysis."""
