"""Calls that resize images, on channel-blocked values and on plain views ``[n, c, h, w]``.

Tables contain the pixels that a result reads. Coordinates and rounding are those of the ONNX operator Resize.
"""

from collections.abc import Sequence

import numpy as np

from cgraph.kernels.kernel import Call, Pointer, View
from cgraph.kernels.resize.signature import LINEAR, NEAREST, WEIGHTED
from cgraph.kernels.target import Target
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.image_views import Images, is_plane_by_plane, same_planes
from cgraph.kernels.views.kernel_calls import KernelCalls, chunk_of, table
from cgraph.kernels.views.thread_blocks import in_blocks
from cgraph.late import LateModule
from cgraph.record import Record

gpu_window = LateModule("cgraph.kernels.window.gpu_calls")

COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")
MOST_ROUNDING = 1e-6  # of a scale that was float32, relative
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


class Strip(Record):
    """Some rows of a result, computed from some rows of the images.

    Fields
        first, count: the first row of the result, and the rows of the whole result
        begin, size: the first available row of the images, and the rows of the whole images
    """

    first: int
    count: int
    begin: int
    size: int


def nearest_calls(
    target: Target,
    out: Images,
    x: Images,
    coordinates: str = "half_pixel",
    rounding: str = "round_prefer_floor",
    scales: tuple[float, float] | None = None,
    strip: Strip | None = None,
) -> KernelCalls:
    """Each pixel of `out` is the nearest one of `x`; `scales` (result / image, per axis) default to the sizes'."""
    picked = [nearest(*axis, coordinates, rounding) for axis in axes(out, x, scales, strip)]
    return resize_calls(target, out, x, picked, strip=strip)


def linear_calls(
    target: Target,
    out: Images,
    x: Images,
    coordinates: str = "half_pixel",
    scales: tuple[float, float] | None = None,
    strip: Strip | None = None,
) -> KernelCalls:
    """Each pixel of `out` is the mean of four of `x`, weighted by distance; floats only."""
    pairs = [neighbours(*axis, coordinates) for axis in axes(out, x, scales, strip)]
    return resize_calls(target, out, x, [p for p, _ in pairs], [w.astype(x.dtype) for _, w in pairs], strip)


def axes(
    out: Images, x: Images, scales: tuple[float, float] | None, strip: Strip | None
) -> list[tuple[int, int, float]]:
    """Return (size of the whole image, size of the whole result, scale) of rows and columns."""
    to, source = same_planes(out, x)
    size, count = (strip.size, strip.count) if strip else (source.rows, to.rows)
    down, across = scales or (count / size, to.columns / source.columns)
    return [(size, count, down), (source.columns, to.columns, across)]


def nearest(size: int, count: int, scale: float, coordinates: str, rounding: str) -> np.ndarray:
    """Return for each of `count` results its nearest of `size` pixels."""
    at = rounded_positions(positions(count, size, coordinates, scale), rounding)
    return np.clip(at, 0, size - 1)


def neighbours(size: int, count: int, scale: float, coordinates: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the two pixels around each result, ``[count, 2]``, and the weight of the second."""
    at = np.clip(positions(count, size, coordinates, scale), 0, size - 1)
    low = np.floor(at).astype(np.int64)
    return np.stack([low, np.minimum(low + 1, size - 1)], axis=1), at - low


def positions(count: int, size: int, coordinates: str, scale: float) -> np.ndarray:
    """Return the coordinates of `count` results in an image of `size` pixels."""
    i = np.arange(count, dtype=np.float64)
    if coordinates == "align_corners":
        return i * (size - 1) / (exact_count(count, size, scale) - 1) if count > 1 else i
    if coordinates == "asymmetric":
        return i / scale
    if coordinates == "pytorch_half_pixel" and count == 1:
        return i
    if coordinates in ("half_pixel", "pytorch_half_pixel"):
        return (i + 0.5) / scale - 0.5
    raise ValueError(f"there are no coordinates {coordinates!r}. Choose one of {', '.join(COORDINATES)}")


def exact_count(count: int, size: int, scale: float) -> float:
    """Return the product of size and scale if `count` is that product rounded down; otherwise `count`."""
    exact = size * scale
    return exact if count + MOST_ROUNDING * count < exact < count + 1 else count


def rounded_positions(at: np.ndarray, rounding: str) -> np.ndarray:
    """Return positions rounded to integers."""
    how = {
        "round_prefer_floor": lambda: np.ceil(at - 0.5),
        "round_prefer_ceil": lambda: np.floor(at + 0.5),
        "floor": lambda: np.floor(at),
        "ceil": lambda: np.ceil(at),
    }
    if rounding not in how:
        raise ValueError(f"there is no rounding {rounding!r}. Choose one of {', '.join(ROUNDINGS)}")
    return how[rounding]().astype(np.int64)


def resize_calls(
    target: Target,
    out: Images,
    x: Images,
    picked: Sequence[np.ndarray],
    weights: Sequence[np.ndarray] = (),
    strip: Strip | None = None,
) -> KernelCalls:
    """Return one call that reads the rows and columns `picked`; two of each if there are weights."""
    to, source = same_planes(out, x)
    if strip:
        some = slice(strip.first, strip.first + to.rows)
        picked = [picked[0][some] - strip.begin, picked[1]]
        weights = [weights[0][some].copy(), weights[1]] if weights else ()
    tables = table(picked[0].ravel() * source.row), table(picked[1].ravel() * source.column)
    blocks = (
        in_blocks(target, gpu_window.resize_calls, x.dtype, to, source, tables, weights)
        if is_plane_by_plane(x)
        else None
    )
    if blocks is not None:
        return blocks
    tasks = to.n * to.count * to.rows
    call = (LINEAR if weights else NEAREST).call(
        (x.dtype, isinstance(x, BlockedView)), tasks, chunk_of(tasks, to.columns * 2.0),
        row_table=Pointer(tables[0]), column_table=Pointer(tables[1]),
        **dict(zip(("row_weights", "column_weights"), map(Pointer, weights))),
        x=source.at, x_image=source.image, x_plane=source.plane,
        out=to.at, o_image=to.image, o_plane=to.plane, o_row=to.row, o_column=to.column,
        rows=to.rows, columns=to.columns, planes=to.count,
    )  # fmt: skip
    return KernelCalls((call,) if tasks else (), (*tables, *weights))


def weighted_calls(out: View, x: View, first: View, weights: View) -> list[Call]:
    """Compute ``out[:, i] = sum over t of weights[i, t] * x[:, first[i] + t]``.

    All views are contiguous: `x` and `out` ``[planes, rows, width]``, `first` int64 ``[m]``, `weights` ``[m, taps]``.
    """
    planes, rows, width = out.shape
    taps, tasks = weights.shape[1], planes * rows if width else 0
    call = WEIGHTED.call(
        (x.dtype,), tasks, chunk_of(tasks, width * taps * 0.2),
        first=first.at, weights=weights.at, taps=taps, x=x.at, x_plane=x.shape[1] * width, x_row=width,
        out=out.at, o_plane=rows * width, o_row=width, rows=rows, width=width,
    )  # fmt: skip
    return [call] if tasks else []
