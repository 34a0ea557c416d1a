"""Static analyzer for the asynchronous machinery of NVIDIA kernels."""

__version__ = "0.1.0"
