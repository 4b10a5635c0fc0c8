"""Sizes and padding of windows, converted to the form of the ops."""

from collections.abc import Iterable, Sequence

import numpy as np

from cgraph import ShapeError

Sizes = int | Sequence[int]
Pad = str | int | Sequence[int]


def sizes(value: Sizes, axes: int) -> tuple[int, ...]:
    """Return one size per axis. ShapeError for a wrong number of sizes, or what is not an integer."""
    if not isinstance(value, int | np.integer | Iterable):
        raise ShapeError(f"{value!r:.60} is not a size. Pass an integer, or one per axis.")
    per_axis = tuple(value) if isinstance(value, Iterable) else (int(value),) * axes
    if len(per_axis) != axes:
        raise ShapeError(f"{list(per_axis)} are {len(per_axis)} sizes for {axes} axes. Pass one size, or one per axis.")
    return per_axis


def pads(
    pad: Pad, shape: Sequence[int], window: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[int, ...]:
    """Return the elements to add before every axis, then after every axis.

    Parameters
        pad: ``"same"``, ``"valid"``, one number, one per axis, or two per axis in the order of the result
        shape, window, stride, dilation: per axis
    """
    axes = len(shape)
    if pad == "valid":
        return (0,) * (2 * axes)
    if pad == "same":
        both = [same_pad(*one) for one in zip(shape, window, stride, dilation)]
        return tuple(n // 2 for n in both) + tuple(n - n // 2 for n in both)
    if isinstance(pad, str):
        raise ShapeError(f"pad is {pad!r}. Use 'same', 'valid' or numbers.")
    if isinstance(pad, Iterable) and len(tuple(pad)) == 2 * axes:
        return tuple(pad)
    return sizes(pad, axes) * 2


def same_pad(n: int, window: int, stride: int, dilation: int) -> int:
    """Return the elements to add so that an axis of n has ``ceil(n / stride)`` windows."""
    covered = (-(-n // stride) - 1) * stride + dilation * (window - 1) + 1
    return max(covered - n, 0)
