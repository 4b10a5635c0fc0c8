"""The language in which emitters write kernels: builders, values, loops, and vector mathematics."""
