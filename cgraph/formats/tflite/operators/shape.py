"""Importers of shape operators: reshapes, slices, joins and padding."""

from math import prod

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.tflite.context import TfliteContext, operator
from cgraph.formats.tflite.fixed import bounds_of
from cgraph.formats.tflite.value import FIRST, TfliteValue
from cgraph.ir.graph import Node


@operator("RESHAPE", on_bytes=False)
def reshape(c: TfliteContext) -> Node:
    """Import RESHAPE; the shape is operand 1, or an option in older files."""
    shape = c.ints(1) if c.get(1) is not None else c.option("shape")
    if shape is None:
        raise FormatError("it has no shape: give it as operand 1 or as an option")
    return cg.reshape(c[0].plain, tuple(shape))


@operator("SQUEEZE", on_bytes=False)
def squeeze(c: TfliteContext) -> Node:
    axes = c.option("axes")
    return cg.squeeze(c[0].plain, tuple(axes) if axes else None)


@operator("EXPAND_DIMS", on_bytes=False)
def expand_dims(c: TfliteContext) -> Node:
    return cg.expand_dims(c[0].plain, only(c.ints(1)))


def only(numbers: list[int]) -> int:
    """Return the only number of a list."""
    if len(numbers) != 1:
        raise FormatError(f"{len(numbers)} numbers, one is expected")
    return numbers[0]


@operator("TRANSPOSE", on_bytes=False)
def transpose(c: TfliteContext) -> Node:
    return cg.transpose(c[0].plain, tuple(c.ints(1)))


@operator("SHAPE")
def shape(c: TfliteContext) -> TfliteValue:
    return TfliteValue(array=np.array(c[0].shape, c.dtypes[0]))


@operator("RANK")
def rank(c: TfliteContext) -> TfliteValue:
    return TfliteValue(array=np.array(c[0].ndim, c.dtypes[0]))


@operator("CONCATENATION", on_bytes=False)
def concat(c: TfliteContext) -> TfliteValue:
    nodes, first = c.alike()
    wide = TfliteValue(nodes[0], first=first)
    joined = cg.concat(nodes, axis=c.axis(c.option("axis"), wide))
    is_cut = c.is_quantised and c.option("activation")
    return TfliteValue(cg.clip(joined, *bounds_of(c)) if is_cut else c.activated(joined), first=first)


@operator("SPLIT", on_bytes=False)
def split(c: TfliteContext) -> list[TfliteValue]:
    """Import SPLIT; operands: the axis, the tensor."""
    axis, count = c.axis(only(c.ints(0)), c[1]), len(c.dtypes)
    n = c[1].node.shape[axis]
    if c.option("count") != count or n % count:
        raise FormatError(f"an axis of {n} is not cut into {c.option('count')} equal results of {count}")
    return parts(c[1], axis, [n // count] * count)


@operator("SPLIT_V", on_bytes=False)
def split_v(c: TfliteContext) -> list[TfliteValue]:
    """Import SPLIT_V; operands: the tensor, the sizes (one may be -1: the rest), the axis."""
    axis, sizes = c.axis(only(c.ints(2)), c[0]), c.ints(1)
    n = c[0].node.shape[axis]
    rest = n - sum(size for size in sizes if size != -1)
    sizes = [rest if size == -1 else size for size in sizes]
    if min(sizes, default=0) < 0 or sum(sizes) != n or len(sizes) != len(c.dtypes):
        raise FormatError(f"an axis of {n} is not cut into {sizes}")
    return parts(c[0], axis, sizes)


def parts(x: TfliteValue, axis: int, sizes: list[int]) -> list[TfliteValue]:
    """Return consecutive slices along an axis of the node."""
    ends = np.cumsum(sizes).tolist()
    before = (slice(None),) * axis
    return [TfliteValue(x.node[(*before, slice(end - size, end))], first=x.first) for size, end in zip(sizes, ends)]


@operator("PACK", on_bytes=False)
def pack(c: TfliteContext) -> Node:
    if c.option("count") != len(c.operands):
        raise FormatError(f"{len(c.operands)} operands, {c.option('count')} are expected")
    return cg.stack(c.nodes, axis=c.option("axis"))


@operator("UNPACK", on_bytes=False)
def unpack(c: TfliteContext) -> list[Node]:
    x, axis = c[0].plain, c.option("axis")
    axis = axis + x.ndim if axis < 0 else axis
    if not 0 <= axis < x.ndim or x.shape[axis] != len(c.dtypes):
        raise FormatError(f"{x.spec} does not have {len(c.dtypes)} parts along axis {axis}")
    return [x[(*[slice(None)] * axis, i)] for i in range(x.shape[axis])]


@operator("SLICE", on_bytes=False)
def slice_value(c: TfliteContext) -> TfliteValue:
    """Import SLICE; operands: the tensor, begin, size (-1: up to the end)."""
    x, begin, size = c[0], c.ints(1), c.ints(2)
    if not len(begin) == len(size) == x.ndim:
        raise FormatError(f"{len(begin)} and {len(size)} numbers for {x.ndim} axes")
    ends = [n if s == -1 else b + s for n, b, s in zip(x.shape, begin, size)]
    if any(not 0 <= b <= e <= n for n, b, e in zip(x.shape, begin, ends)):
        raise FormatError(f"{size} elements from {begin} on exceed the shape {list(x.shape)}")
    index = [slice(b, e) for b, e in zip(begin, ends)]
    return TfliteValue(x.node[tuple(index[i] for i in FIRST) if x.first else tuple(index)], first=x.first)


@operator("STRIDED_SLICE", on_bytes=False)
def strided_slice(c: TfliteContext) -> TfliteValue:
    """Import STRIDED_SLICE; operands: the tensor, begin, end and step per axis; options are masks of these axes."""
    begin, end, step = (c.ints(i) for i in (1, 2, 3))
    if not len(begin) == len(end) == len(step) or 0 in step:
        raise FormatError(f"begins {begin}, ends {end} and steps {step} do not fit")
    if c.option("offset"):
        end = [b + e for b, e in zip(begin, end)]
    index = [slice_of(c, i, *numbers) for i, numbers in enumerate(zip(begin, end, step))]
    if c[0].first and len(index) == 4 and all(isinstance(x, slice) for x in index):
        return TfliteValue(c[0].node[tuple(index[i] for i in FIRST)], first=True)
    return TfliteValue(c[0].plain[tuple(index)])


def slice_of(c: TfliteContext, i: int, begin: int, end: int, step: int) -> slice | int | None:
    """Return the slice of an axis; an ellipsis, a new axis or one index if a mask has its bit."""
    masked = {name: c.option(name) >> i & 1 for name in ("begin", "end", "ellipsis", "new_axis", "shrink")}
    if masked["ellipsis"]:
        return ...  # type: ignore[return-value]
    if masked["new_axis"]:
        return None
    if masked["shrink"]:
        return begin
    return slice(None if masked["begin"] else begin, None if masked["end"] else end, step)


def widths(c: TfliteContext) -> list[tuple[int, int]]:
    """Return the padding before and after each axis, in the node's order."""
    array, x = c.constant(1), c[0]
    if array.shape != (x.ndim, 2) or array.dtype.kind != "i" or (array < 0).any():
        raise FormatError(f"widths {list(array.shape)} for {x.ndim} axes")
    pairs = [(int(a), int(b)) for a, b in array]
    return [pairs[i] for i in FIRST] if x.first else pairs


def nothing(c: TfliteContext) -> int:
    """Return the value of operand 0 that represents 0."""
    return 0 if c[0].quantised is None else c[0].bytes.zero


@operator("PAD", "PADV2", on_bytes=False)
def pad(c: TfliteContext) -> TfliteValue:
    fill = nothing(c)
    if c.get(2) is not None:
        array = c[2].stored if c[2].array is not None else c.constant(2)
        if array.size != 1:
            raise FormatError(f"{array.size} numbers to fill with, one is expected")
        fill = array.reshape(()).item()
    return TfliteValue(cg.pad(c[0].node, widths(c), constant_values=fill), first=c[0].first)


@operator("MIRROR_PAD", on_bytes=False)
def mirror_pad(c: TfliteContext) -> TfliteValue:
    """Import MIRROR_PAD; mode 0 excludes the edge, mode 1 repeats it."""
    x, mode = c[0].node, c.option("mode")
    if mode not in (0, 1):
        raise FormatError(f"mirror padding of mode {mode} is not supported. Use mode 0 (REFLECT) or 1 (SYMMETRIC)")
    if mode == 0:
        return TfliteValue(cg.pad(x, widths(c), mode="reflect"), first=c[0].first)
    for axis, pair in enumerate(widths(c)):
        n = x.shape[axis]
        if max(pair) > n:
            raise FormatError(f"widths {pair} are larger than the {n} elements that they repeat")
        c.spend(nbytes=8 * (n + sum(pair)))
        x = cg.take(x, np.pad(np.arange(n), pair, "symmetric"), axis) if any(pair) else x
    return TfliteValue(x, first=c[0].first)


@operator("DILATE", on_bytes=False)
def dilate(c: TfliteContext) -> Node:
    """Import DILATE; operands: x, the distance of its elements along each axis, the number between them."""
    x, steps = c[0].plain, c.ints(1)
    if len(steps) != x.ndim or min(steps, default=1) < 1 or c[2].node.size != 1:
        raise FormatError(f"steps {steps} and {c[2].node.size} numbers between do not fit {x.spec}")
    sizes = tuple(max((n - 1) * s + 1, 0) for n, s in zip(x.shape, steps))
    return cg.set_slice(cg.broadcast_to(c[2].plain.reshape(()), sizes), tuple(slice(None, None, s) for s in steps), x)


@operator("TILE", on_bytes=False)
def tile(c: TfliteContext) -> Node:
    return cg.tile(c[0].plain, tuple(c.ints(1)))


@operator("BROADCAST_TO", on_bytes=False)
def broadcast_to(c: TfliteContext) -> Node:
    return cg.broadcast_to(c[0].plain, tuple(c.ints(1)))


@operator("BROADCAST_ARGS")
def broadcast_args(c: TfliteContext) -> TfliteValue:
    """Import BROADCAST_ARGS: the shape to which two constant shapes are broadcast."""
    return TfliteValue(array=np.array(np.broadcast_shapes(tuple(c.ints(0)), tuple(c.ints(1))), c.dtypes[0]))


@operator("FILL")
def fill(c: TfliteContext) -> Node:
    return cg.broadcast_to(c[1].plain.reshape(()), tuple(c.ints(0)))


@operator("REVERSE_V2", on_bytes=False)
def reverse(c: TfliteContext) -> Node:
    return cg.flip(c[0].plain, tuple(c.ints(1)))


@operator("DEPTH_TO_SPACE", "SPACE_TO_DEPTH", on_bytes=False)
def depth_to_space(c: TfliteContext) -> Node:
    """Import DEPTH_TO_SPACE and SPACE_TO_DEPTH, with the pixel of a block as the slower channel axis."""
    x, b = c[0].plain, c.option("block")
    n, h, w, d = x.shape
    if b < 1 or (d % (b * b) if c.kind == "DEPTH_TO_SPACE" else h % b or w % b):
        raise FormatError(f"{x.spec} has no blocks of {b}")
    if c.kind == "DEPTH_TO_SPACE":
        y = x.reshape((n, h, w, b, b, d // (b * b))).transpose((0, 1, 3, 2, 4, 5))
        return y.reshape((n, h * b, w * b, d // (b * b)))
    return x.reshape((n, h // b, b, w // b, b, d)).transpose((0, 1, 3, 2, 4, 5)).reshape((n, h // b, w // b, d * b * b))


@operator("SPACE_TO_BATCH_ND", on_bytes=False)
def space_to_batch(c: TfliteContext) -> Node:
    """Import SPACE_TO_BATCH_ND; operands: images, block sizes, padding."""
    blocks, pads = c.ints(1), c.constant(2)
    x, m = c[0].plain, len(c.ints(1))
    if not 0 < m < x.ndim or pads.shape != (m, 2) or min(blocks) < 1 or (pads < 0).any():
        raise FormatError(f"blocks {blocks} and padding {list(pads.shape)} do not fit {x.spec}")
    wide = [(0, 0), *((int(a), int(b)) for a, b in pads), *[(0, 0)] * (x.ndim - m - 1)]
    x = cg.pad(x, wide, constant_values=nothing(c))
    if any(n % b for n, b in zip(x.shape[1:], blocks)):
        raise FormatError(f"{x.spec} is not made of blocks {blocks}")
    cut = [n for size, b in zip(x.shape[1:], blocks) for n in (size // b, b)]
    inner = [2 + 2 * i for i in range(m)]
    y = x.reshape((x.shape[0], *cut, *x.shape[m + 1 :]))
    y = y.transpose((*inner, 0, *(i - 1 for i in inner), *range(2 * m + 1, y.ndim)))
    return y.reshape((x.shape[0] * prod(blocks), *(n // b for n, b in zip(x.shape[1:], blocks)), *x.shape[m + 1 :]))


@operator("BATCH_TO_SPACE_ND", on_bytes=False)
def batch_to_space(c: TfliteContext) -> Node:
    """Import BATCH_TO_SPACE_ND; operands: images, block sizes, crops."""
    blocks, crops = c.ints(1), c.constant(2)
    x, m = c[0].plain, len(c.ints(1))
    if not 0 < m < x.ndim or crops.shape != (m, 2) or min(blocks) < 1 or (crops < 0).any() or x.shape[0] % prod(blocks):
        raise FormatError(f"blocks {blocks} and crops {list(crops.shape)} do not fit {x.spec}")
    n = x.shape[0] // prod(blocks)
    y = x.reshape((*blocks, n, *x.shape[1:]))
    y = y.transpose((m, *(i for k in range(m) for i in (m + 1 + k, k)), *range(2 * m + 1, y.ndim)))
    y = y.reshape((n, *(a * b for a, b in zip(x.shape[1:], blocks)), *x.shape[m + 1 :]))
    return y[(slice(None), *(slice(int(a), size - int(b)) for (a, b), size in zip(crops, y.shape[1:])))]


@operator("REVERSE_SEQUENCE", on_bytes=False)
def reverse_sequence(c: TfliteContext) -> Node:
    """Import REVERSE_SEQUENCE: reverse the first elements along an axis, as many as operand 1 says for each sample."""
    x = c[0].plain
    time, batch = (c.axis(c.option(name), TfliteValue(x)) for name in ("time", "batch"))
    if time == batch or c[1].shape != (x.shape[batch],):
        raise FormatError(f"lengths {list(c[1].shape)} of axis {time} for samples of axis {batch} do not fit {x.spec}")
    c.spend(nbytes=8 * x.shape[time])
    steps = np.arange(x.shape[time]).reshape((-1, 1))
    lengths = cg.astype(c[1].plain, "int64")
    places = cg.where(cg.less(steps, lengths), lengths - 1 - steps, steps)
    moved = cg.moveaxis(x, (time, batch), (0, 1))
    places = places.reshape((*places.shape, *[1] * (x.ndim - 2)))
    return cg.moveaxis(cg.take_along_axis(moved, places, 0), (0, 1), (time, batch))


@operator("MATRIX_DIAG", on_bytes=False)
def matrix_diag(c: TfliteContext) -> Node:
    """Import MATRIX_DIAG: matrices ``[..., n, n]`` with the last axis on their diagonals, and integers 0 elsewhere."""
    x = cg.expand_dims(c[0].plain, -1)
    zero = 0 if c[0].quantised is None else c[0].bytes.sign
    return on_diagonal(c, x, cg.full((*x.shape[:-1], x.shape[-2]), zero, x.dtype))


@operator("MATRIX_SET_DIAG", on_bytes=False)
def matrix_set_diag(c: TfliteContext) -> Node:
    """Import MATRIX_SET_DIAG; operands: matrices, their new diagonals."""
    x, diagonal = c[0].plain, c[1].plain
    if x.ndim < 2 or diagonal.shape != (*x.shape[:-2], min(x.shape[-2:])):
        raise FormatError(f"diagonals {diagonal.spec} do not fit matrices {x.spec}")
    return on_diagonal(c, cg.expand_dims(diagonal, -1 if x.shape[-2] <= x.shape[-1] else -2), x)


def on_diagonal(c: TfliteContext, diagonal: Node, x: Node) -> Node:
    """Return matrices with other diagonals, given as columns or rows."""
    rows, columns = x.shape[-2:]
    c.spend(nbytes=rows * columns)
    return cg.where(np.eye(rows, columns, dtype=bool), diagonal, x)
