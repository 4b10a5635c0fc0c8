"""Native code that launches a table of GPU kernels through the CUDA driver."""
