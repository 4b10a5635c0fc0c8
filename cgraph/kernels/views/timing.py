"""Estimates of how long kernels take, to choose chunks of tasks by."""

from cgraph.kernels.target import Target


def tile_ns(target: Target, multiply_adds: int) -> float:
    """About the time of so many vector multiply-adds, to choose chunks by."""
    return multiply_adds * (0.3 if target.fma else 0.6)
