"""The decorator of importers that slide windows along axes of dynamic length: convolutions and maximum pools.

The array is computed at its maximum length, with neutral padding after the value. So each result that a run returns
reads the value and what padding would give, and its length follows from that of the value.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, Importer, Value
from cgraph.formats.onnx.dynamic.bounds import Length, Size
from cgraph.formats.onnx.dynamic.value import counts_of, fill_padding, with_lengths
from cgraph.formats.onnx.dynamic_ops.operators import prepare_operand

FIRST = 2  # axis of ``[n, c, ...]`` along which windows slide


def sliding(fill: Callable[[Any], Any], result: Callable[[Context, int, Any], Any]) -> Callable[[Importer], Importer]:
    """Declare an importer of windows over operand 0, ``[n, c, ...]``: samples and images may be of dynamic length.

    Parameters
        fill: function of the dtype that returns the neutral padding
        result: function of the context, the number of the windows' axis and the length there, an int or a node; it
            returns the length of the result, or raises FormatError
    """

    def decorator(importer: Importer) -> Importer:
        @wraps(importer)
        def ragged(c: Context) -> Value:
            if not c.is_ragged:
                return importer(c)
            x = c.array(0)
            prepare_operand(c, x, [1], None)
            counts = counts_of(x)
            lengths = {axis: length_of(c, axis, n, result) for axis, n in counts.items()}
            node = fill_padding(c.limits, x, fill(x.dtype), [axis for axis in counts if axis >= FIRST])
            return with_lengths(importer(c.reading({0: node})), lengths)

        return ragged

    return decorator


def length_of(c: Context, axis: int, count: Size, result: Callable[[Context, int, Any], Any]) -> Length:
    """Return the length of the result along an axis of dynamic length."""
    if axis < FIRST:
        return count
    return c.limits.length(cg.maximum(result(c, axis - FIRST, count.node), 0))


def conv_length(c: Context, i: int, n: Any) -> Any:
    """Return the number of windows along axis i of a convolution or pool over n elements."""
    windows = window_sizes(c)
    stride, dilation = ((c.attribute(name) or [1] * len(windows))[i] for name in ("strides", "dilations"))
    reach, mode = (windows[i] - 1) * dilation + 1, c.attribute("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        if stride > 1:
            raise refusal(c, i, f"auto_pad {mode} with stride {stride}")
        return n
    if c.attribute("ceil_mode", 0):
        raise refusal(c, i, "ceil_mode", instead="")
    pads = c.attribute("pads") if mode == "NOTSET" else None
    before, after = pads[i :: len(windows)] if pads else (0, 0)
    return (n + (before + after - reach)) // stride + 1


def transposed_length(c: Context, i: int, n: Any) -> Any:
    """Return the length of a transposed convolution of n elements along axis i."""
    windows = window_sizes(c)
    if c.attribute("output_shape") or c.attribute("auto_pad", "NOTSET") in ("SAME_UPPER", "SAME_LOWER"):
        raise refusal(c, i, "output_shape or auto_pad")
    ones, zeros = [1] * len(windows), [0] * len(windows)
    stride, dilation = ((c.attribute(name) or ones)[i] for name in ("strides", "dilations"))
    extra, pads = (c.attribute("output_padding") or zeros)[i], c.attribute("pads") or 2 * zeros
    before, after = pads[i :: len(windows)]
    return (n - 1) * stride + ((windows[i] - 1) * dilation + 1 + extra - before - after)


def window_sizes(c: Context) -> tuple[int, ...]:
    """Return the sizes of the windows: those of a pool, or of the filters."""
    return tuple(c.attribute("kernel_shape") or c[1].shape[FIRST:])


def refusal(c: Context, i: int, what: str, instead: str = "pads, or ") -> FormatError:
    x: Any = c.array(0)
    return FormatError(
        f"{what} is not supported along axis {FIRST + i} of {x.text}, whose length is known only at run time. Give "
        f"{instead}shapes= that fix it"
    )
