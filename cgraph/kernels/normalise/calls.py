"""Calls of normalisation: by the mean and variance of each row or group, and across channels. All views contiguous."""

from math import prod

from cgraph.kernels.kernel import Call, View
from cgraph.kernels.normalise.block_signature import ROWS as BLOCKS
from cgraph.kernels.normalise.signature import CHANNELS, ROWS
from cgraph.kernels.target import Target
from cgraph.kernels.views.layout import CHAIN, TASK_ELEMENTS, block_lanes
from cgraph.kernels.views.thread_blocks import in_blocks
from cgraph.late import LateModule

gpu_normalise = LateModule("cgraph.kernels.normalise.gpu_calls")


def layer_norm_calls(
    target: Target, out: View, x: View, scale: View | None, shift: View | None, axes: int, epsilon: float
) -> list[Call]:
    """Compute ``(x - mean) / sqrt(variance + epsilon) * scale + shift`` over the last `axes` axes.

    `scale` and `shift` have the shape of those axes, or both are None. `out` may be `x`.

    Raises
        ValueError: a view is not contiguous, or does not fit
    """
    length = prod(x.shape[len(x.shape) - axes :])
    check(out, x, scale, shift, length)
    return rows_calls(target, out, x, scale, shift, x.size // max(length, 1), (1, 1, length), epsilon)


def rms_norm_calls(target: Target, out: View, x: View, scale: View, axes: int, epsilon: float) -> list[Call]:
    """Compute ``x / sqrt(mean(x ** 2) + epsilon) * scale`` over the last `axes` axes.

    `scale` has the shape of those axes. `out` may be `x`.

    Raises
        ValueError: a view is not contiguous, or does not fit
    """
    length = prod(x.shape[len(x.shape) - axes :])
    check(out, x, scale, scale, length)
    return rows_calls(target, out, x, scale, None, x.size // max(length, 1), (1, 1, length), epsilon)


def group_norm_calls(
    target: Target, out: View, x: View, scale: View | None, shift: View | None, groups: int, epsilon: float
) -> list[Call]:
    """Normalise each of `groups` groups of channels of each image, x being ``[n, c, ...]``.

    `scale` and `shift` are ``[c]``, or both None. One group per channel is instance normalisation. `out` may be `x`.

    Raises
        ValueError: a view is not contiguous or does not fit, or `groups` does not divide the channels
    """
    n, c = x.shape[:2]
    if c % groups:
        raise ValueError(f"{groups} groups do not divide {c} channels. Choose groups= that divides them")
    check(out, x, scale, shift, c)
    return rows_calls(target, out, x, scale, shift, n * groups, (groups, c // groups, prod(x.shape[2:])), epsilon)


def rows_calls(
    target: Target,
    out: View,
    x: View,
    scale: View | None,
    shift: View | None,
    rows: int,
    shape: tuple[int, int, int],
    epsilon: float,
) -> list[Call]:
    """Return calls over rows of ``shape = (groups, segments, length)``, in the emitter's terms.

    A scale without a shift: the mean is taken as 0.
    """
    groups, segments, length = shape
    if x.size == 0:
        return []
    row = segments * length
    scales = "none" if scale is None else "element" if segments == groups == 1 else "segment"
    # a row with one scale for each element is layer normalisation, unless the row is one channel
    if scales == "element" and scale is not None and scale.size != length:
        scales = "segment"
    if scale is not None and shift is None:
        scales = "root"
    blocks = in_blocks(target, gpu_normalise.normalised_calls, out, x, scale, shift, scales, rows, shape, epsilon)
    if blocks is not None:
        return blocks
    each = max(1, TASK_ELEMENTS // (2 * row))
    lanes = block_lanes(target, x.dtype, row)
    if lanes and row <= CHAIN * lanes and scales != "segment":
        return [block_call(out, x, (scale or x, shift or x), (scales, lanes), (rows, each, row), epsilon)]
    step = row * x.itemsize
    call = ROWS.call(
        (x.dtype, scales), -(-rows // each),
        rows=rows, each=each, groups=groups, segments=segments, length=length, x_row=step, out_row=step,
        x=x.at, x_step=x.itemsize, out=out.at, out_step=x.itemsize,
        scale=(scale or x).at, scale_step=x.itemsize, shift=(shift or x).at, shift_step=x.itemsize,
        epsilon=float(epsilon),
    )  # fmt: skip
    return [call]


def block_call(
    out: View,
    x: View,
    factors: tuple[View, View],
    params: tuple[str, int],
    shape: tuple[int, int, int],
    epsilon: float,
) -> Call:
    """Return a call over blocks of short rows, of ``shape = (rows, rows of a task, columns)``."""
    (rows, each, columns), (scale, shift) = shape, factors
    return BLOCKS.call(
        (x.dtype, *params), -(-rows // each),
        rows=rows, each=each, columns=columns, epsilon=float(epsilon),
        x=x.at, out=out.at, scale=scale.at, shift=shift.at,
    )  # fmt: skip


def check(out: View, x: View, scale: View | None, shift: View | None, parameters: int) -> None:
    views = [v for v in (out, x, scale, shift) if v is not None]
    if not all(v.is_contiguous and v.dtype == x.dtype for v in views) or out.shape != x.shape:
        layouts = ", ".join(f"{v.dtype}{v.shape} {v.strides}" for v in views)
        raise ValueError(f"normalisation takes contiguous views of one dtype, out shaped like x, not {layouts}")
    if (scale is None) != (shift is None):
        raise ValueError("scale and shift come together. Pass both or neither")
    if any(v.size != parameters for v in views[2:]):
        raise ValueError(f"scale and shift have {parameters} elements, not {[v.size for v in views[2:]]}")


def local_response_calls(
    target: Target, out: View, x: View, size: int, alpha: float, beta: float, bias: float
) -> list[Call]:
    """Compute ``x / (bias + alpha / size * s)**beta``, with s the sum of the squares of the `size` channels around.

    `x` is ``[n, c, ...]``; `out` is not `x`.

    Raises
        ValueError: a view is not contiguous, or `out` is not shaped like `x`
    Source
        ONNX operator LRN
    """
    check(out, x, None, None, 0)
    if x.size == 0:
        return []
    lanes = target.lanes_of(x.dtype)
    n, c = x.shape[:2]
    positions = prod(x.shape[2:])
    block = min(positions, max(lanes, TASK_ELEMENTS // (4 * c) // 64 * 64))
    blocks = -(-positions // block)
    before = (size - 1) // 2
    channel, image = positions * x.itemsize, c * positions * x.itemsize
    call = CHANNELS.call(
        (x.dtype, beta == 0.75), n * blocks,
        blocks=blocks, block=block, positions=positions, channels=c, before=before, after=size - 1 - before,
        x_image=image, x_channel=channel, out_image=image, out_channel=channel, x=x.at, out=out.at,
        alpha=float(alpha) / size, beta=float(beta), bias=float(bias),
    )  # fmt: skip
    return [in_blocks(target, gpu_normalise.channels_call, call, x.size) or call]
