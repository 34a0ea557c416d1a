"""The execution engine: runs the synchronization of a kernel and records what every agent did."""
