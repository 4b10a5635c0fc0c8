"""Exact search over offsets: the instance, the compiled kernel, the orders it tries, and the rounds that drive it."""
