"""The twelve scripts of examples/scripts in NumPy, cgraph, JAX and Numba."""
