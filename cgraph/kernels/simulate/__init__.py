"""Arithmetic that NumPy lacks, for the simulator of GPU kernels."""
