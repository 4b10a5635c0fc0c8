"""Estimates of kernel times, for the choice of chunks."""

from cgraph.kernels.target import Target


def tile_ns(target: Target, multiply_adds: int) -> float:
    """Return the approximate nanoseconds of this many vector multiply-adds."""
    return multiply_adds * (0.3 if target.fma else 0.6)
