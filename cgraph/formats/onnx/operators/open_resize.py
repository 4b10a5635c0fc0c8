"""Importer of Resize with sizes or scales that are known only at run time: one axis after another."""

from functools import reduce
from operator import add
from typing import Any

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context
from cgraph.formats.onnx.dynamic.bounds import Length
from cgraph.formats.onnx.dynamic.value import Array, lengths_of, node_in, with_lengths
from cgraph.formats.onnx.dynamic_ops.slices import as_length, take_along, unwrap
from cgraph.formats.unspecified import UnknownError
from cgraph.ir.graph import Node
from cgraph.ops.shape import axis_of

ROUNDED: dict[str, Any] = {
    "round_prefer_floor": lambda v: cg.ceil(v - 0.5),
    "round_prefer_ceil": lambda v: cg.floor(v + 0.5),
    "floor": lambda v: cg.floor(v),
    "ceil": lambda v: cg.ceil(v),
}
REFUSED = {"antialias": 0, "exclude_outside": 0, "keep_aspect_ratio_policy": "stretch"}


def open_resize(c: Context) -> Array:
    """Import Resize with nearest, linear or cubic interpolation, as `resize` does for fixed sizes.

    Raises
        UnknownError: the mode, coordinates or an attribute needs fixed sizes
    """
    x, mode = c.array(0), c.attribute("mode", "nearest")
    coordinates = c.attribute("coordinate_transformation_mode", "half_pixel")
    for name, value in REFUSED.items():
        if c.attribute(name, value) != value:
            raise require_constant(c, f"{name}={c.attribute(name)!r}")
    if mode not in ("nearest", *WEIGHTS) or (mode in WEIGHTS and x.dtype.kind != "f"):
        raise require_constant(c, f"mode {mode!r} of {x.dtype}")
    axes = [axis_of(a, x.ndim) for a in c.attribute("axes", range(x.ndim))]
    sizes = c.lengths(3) or [None] * len(axes)
    for i, (axis, size) in enumerate(zip(axes, sizes, strict=True)):
        n = unwrap(lengths_of(x)[axis])
        scale = float_of(size) / float_of(n) if size is not None else factor(c, i)
        m = size if size is not None else as_length(c, cg.astype(cg.floor(rounded(float_of(n) * scale)), "int64"))
        is_same = m is n if isinstance(m, Node) or isinstance(n, Node) else m == n
        if is_same and (size is not None or (not isinstance(scale, Node) and scale == 1)):
            continue
        steps = float_of(c.limits.steps(c.room(m, [3, 2], axis)))
        if mode == "nearest":
            steps, scale = (in_float32(v) for v in (steps, scale))
        at = places(c, steps, float_of(n), float_of(m), scale, coordinates)
        x = at_nearest(c, x, axis, at, m) if mode == "nearest" else interpolate(c, x, axis, at, m)
    return x


def require_constant(c: Context, what: str) -> UnknownError:
    """Return the error for a feature that needs fixed sizes, with the inputs that determine them."""
    nodes = [node_in(c.array(i)) for i in (0, 2, 3) if c.value(i) is not None and (i or c.is_ragged)]
    missing = [name for node in nodes for name in c.evaluator.missing(node)]
    return UnknownError(
        f"{what} takes no sizes that are known only at run time", constants=list(dict.fromkeys(missing))
    )


def float_of(x: Any) -> Any:
    """Return a length, number or node as float64."""
    return cg.astype(unwrap(x), "float64") if isinstance(unwrap(x), Node) else float(unwrap(x))


def in_float32(x: Any) -> Any:
    """Return a node in float32, and a number unchanged: nearest elements depend on the rounding of coordinates."""
    return cg.astype(x, "float32") if isinstance(x, Node) else x


def rounded(x: Any) -> Any:
    """Round a float64 to float32, as `changes` does for fixed sizes."""
    return cg.astype(cg.astype(x, "float32"), "float64")


def factor(c: Context, i: int) -> Any:
    """Return the scale of an axis."""
    return cg.astype(c[2][i], "float64") if c.is_open(2) else float(c.constant(2)[i])


def places(c: Context, steps: Node, n: Any, m: Any, scale: Any, coordinates: str) -> Any:
    """Return the coordinate of each result in the operand. Source: ONNX operator Resize."""
    if coordinates == "asymmetric":
        return steps / scale
    if coordinates == "half_pixel":
        return (steps + 0.5) / scale - 0.5
    if coordinates == "pytorch_half_pixel":
        return cg.where(m > 1, (steps + 0.5) / scale - 0.5, 0.0)
    if coordinates == "align_corners":
        return cg.where(m > 1, steps * (n - 1) / (n * scale - 1), 0.0)
    raise require_constant(c, f"coordinates {coordinates!r}")


def clip_to_axis(c: Context, x: Array, axis: int, at: Any) -> Node:
    """Clip positions to an axis."""
    return cg.clip(cg.astype(at, "int64"), 0, cg.maximum(unwrap(lengths_of(x)[axis]) - 1, 0))


def at_nearest(c: Context, x: Array, axis: int, at: Any, length: Length) -> Array:
    rounding = c.attribute("nearest_mode", "round_prefer_floor")
    if rounding not in ROUNDED:
        raise FormatError(f"nearest_mode {rounding!r} is not supported. Use one of {', '.join(ROUNDED)}")
    return take_along(c, x, axis, clip_to_axis(c, x, axis, ROUNDED[rounding](at)), length)


def interpolate(c: Context, x: Array, axis: int, at: Any, length: Length) -> Array:
    """Sum neighbours with weights that depend on their distance; beyond an end, those at the end count."""
    low, mode = cg.floor(at), c.attribute("mode", "nearest")
    terms = []
    for tap, weight in WEIGHTS[mode](at - low, c.attribute("cubic_coeff_a", -0.75)).items():
        part = take_along(c, x, axis, clip_to_axis(c, x, axis, low + tap), length)
        factor = cg.reshape(weight, (-1, *[1] * (x.ndim - 1 - axis)))
        terms.append(node_in(part) * cg.astype(factor, x.dtype)[: node_in(part).shape[axis]])
    return with_lengths(reduce(add, terms), dict(enumerate(lengths_of(part))))


def linear_weights(t: Node, a: float) -> dict[int, Node]:
    """Return the weights of two neighbours of a place `t` beyond the first."""
    return {0: 1 - t, 1: t}


def cubic_weights(t: Node, a: float) -> dict[int, Node]:
    """Return the weights of four neighbours. Source: Keys 1981, doi:10.1109/TASSP.1981.1163711."""
    inner, outer = t, t + 1
    near = [((a + 2) * d - (a + 3)) * d * d + 1 for d in (inner, 1 - inner)]
    far = [((a * d - 5 * a) * d + 8 * a) * d - 4 * a for d in (outer, 3 - outer)]
    return {-1: far[0], 0: near[0], 1: near[1], 2: far[1]}


WEIGHTS: dict[str, Any] = {"linear": linear_weights, "cubic": cubic_weights}
