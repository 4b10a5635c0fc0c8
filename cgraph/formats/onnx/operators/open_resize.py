"""Importer of Resize with sizes or scales that are known only at run time: one axis after another."""

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
    """Import Resize with nearest or linear interpolation, as `resize` does for fixed sizes.

    Raises
        UnknownError: the mode, coordinates or an attribute needs fixed sizes
    """
    x, mode = c.array(0), c.attribute("mode", "nearest")
    coordinates = c.attribute("coordinate_transformation_mode", "half_pixel")
    for name, value in REFUSED.items():
        if c.attribute(name, value) != value:
            raise require_constant(c, f"{name}={c.attribute(name)!r}")
    if mode not in ("nearest", "linear") or (mode == "linear" and x.dtype.kind != "f"):
        raise require_constant(c, f"mode {mode!r} of {x.dtype}")
    axes = [axis_of(a, x.ndim) for a in c.attribute("axes", range(x.ndim))]
    sizes = c.lengths(3) or [None] * len(axes)
    for i, (axis, size) in enumerate(zip(axes, sizes, strict=True)):
        n = unwrap(lengths_of(x)[axis])
        scale = float_of(size) / float_of(n) if size is not None else factor(c, i)
        m = size if size is not None else as_length(c, cg.astype(cg.floor(float_of(n) * scale), "int64"))
        if m == n and (size is not None or (not isinstance(scale, Node) and scale == 1)):
            continue
        steps = float_of(c.limits.steps(c.room(m, [3, 2], axis)))
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
    """Interpolate linearly between two neighbours."""
    low = cg.floor(at)
    share = cg.reshape(at - low, (-1, *[1] * (x.ndim - 1 - axis)))
    first, second = (take_along(c, x, axis, clip_to_axis(c, x, axis, v), length) for v in (low, low + 1))
    share = cg.astype(share, x.dtype)[: node_in(first).shape[axis]]
    node = node_in(first) * (1 - share) + node_in(second) * share
    return with_lengths(node, dict(enumerate(lengths_of(first))))
