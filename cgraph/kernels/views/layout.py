"""Arrangement of views before a call: broadcasting, the order of axes, merging axes, and division into tasks."""

from collections.abc import Iterable
from itertools import chain
from math import prod

from cgraph.kernels.kernel import Pointer, View, collapse, contiguous
from cgraph.kernels.target import Target
from cgraph.record import Record, replace

TASK_ELEMENTS = 32768
# blocks of columns are multiples of this, so that each begins with the first element of a repeated vector
BLOCK = 64
# additions of floats in a row: a longer sum keeps its rounding errors
CHAIN = 16
# contiguous rows that are computed together
BLOCK_ROWS = 4


def broadcast(x: View, shape: tuple[int, ...]) -> View:
    """Return `x` with `shape`, by NumPy's rule: missing axes come first, axes of one element repeat.

    Raises
        ValueError: an axis has neither one element nor as many as `shape`
    """
    missing = len(shape) - len(x.shape)
    have = (1,) * missing + x.shape
    steps = (0,) * missing + x.strides
    if missing < 0 or any(n not in (1, m) for n, m in zip(have, shape)):
        raise ValueError(f"a view of shape {x.shape} does not broadcast to {shape}: an axis must be equal or 1")
    return View(x.at, shape, tuple(s if n == m else 0 for n, m, s in zip(have, shape, steps)), x.dtype)


class Walk(Record):
    """Views of one shape, merged and in the order in which a kernel walks them.

    Fields
        views: same shape, fastest axis last, at least two axes (rows and columns)
        repeated: positions of views that repeat one vector along a row; their column stride is 0
        period: elements of that vector
    """

    views: tuple[View, ...]
    repeated: frozenset[int] = frozenset()
    period: int = 0

    @property
    def access(self) -> str:
        """The access to a row of each view: as `access_of`, or ``p`` for a repeated vector."""
        return "".join("p" if i in self.repeated else access_of(v) for i, v in enumerate(self.views))

    @property
    def columns(self) -> int:
        return self.views[0].shape[-1]

    @property
    def rows(self) -> int:
        return prod(self.views[0].shape[:-1])

    def table(self) -> list[int]:
        """Return the outer axes, fastest first, for the emitters' `walk`."""
        return outer_table(self.views, self.rank)

    @property
    def rank(self) -> int:
        """Outer axes."""
        return len(self.views[0].shape) - 1


def axis_table(views: tuple[View, ...], axes: Iterable[int]) -> list[int]:
    """Return for each axis its extent, then its stride in each view, for the emitters' `walk`; `axes` fastest first."""
    return [n for axis in axes for n in (views[0].shape[axis], *(v.strides[axis] for v in views))]


def outer_table(views: tuple[View, ...], rank: int) -> list[int]:
    """Return `axis_table` of the first `rank` axes, the last of them first."""
    return axis_table(views, range(rank - 1, -1, -1))


def merge_axes(views: tuple[View, ...]) -> tuple[View, ...]:
    """Merge neighbouring axes where all views allow it; the result has at least two axes."""
    shape, strides = collapse(views[0].shape, *(v.strides for v in views))
    missing = max(0, 2 - len(shape))
    if missing:
        strides = [(0,) * missing + s for s in strides]
    return tuple(replace(v, shape=(1,) * missing + shape, strides=s) for v, s in zip(views, strides))


def ascending(views: tuple[View, ...], leader: int) -> tuple[View, ...]:
    """Return the views with every axis in the direction in which the view `leader` ascends."""
    for axis, (n, step) in enumerate(zip(views[leader].shape, views[leader].strides)):
        if step < 0:
            views = tuple(
                replace(v.moved((n - 1) * v.strides[axis]), strides=with_item(v.strides, axis, -v.strides[axis]))
                for v in views
            )
    return views


def with_item(items: tuple[int, ...], i: int, value: int) -> tuple[int, ...]:
    return (*items[:i], value, *items[i + 1 :])


def permute_axes(views: tuple[View, ...], order: list[int]) -> tuple[View, ...]:
    """Return every view with its axes in another order."""
    return tuple(
        replace(v, shape=tuple(v.shape[i] for i in order), strides=tuple(v.strides[i] for i in order)) for v in views
    )


def by_rows(at: Pointer, shape: tuple[int, ...], dtype: str) -> View:
    """Return a view of images ``[n, c, h, ...]`` stored row by row: a row of all planes, then the next row."""
    n, planes, count, *row = shape
    rows = contiguous(at, (count, n, planes, *row), dtype)
    return permute_axes((rows,), [1, 2, 0, *range(3, len(shape))])[0]


def pointwise_walk(views: tuple[View, ...], leader: int, lanes: int) -> Walk:
    """Return the order for elementwise work: along the memory of the view `leader`.

    A last axis shorter than a vector is replaced by the longest one, if that fills vectors.
    """
    views = ascending(views, leader)

    def stride_first(axis: int) -> tuple[int, ...]:
        return tuple(-abs(v.strides[axis]) for v in (views[leader], *views))

    views = merge_axes(permute_axes(views, sorted(range(len(views[0].shape)), key=stride_first)))
    shape = views[0].shape
    longest = max(range(len(shape)), key=lambda axis: shape[axis])
    if shape[-1] < lanes <= shape[longest]:
        others = [axis for axis in range(len(shape)) if axis != longest]
        views = permute_axes(views, [*others, longest])
    return repeat_vectors(views, leader, lanes)


def repeat_vectors(views: tuple[View, ...], leader: int, lanes: int) -> Walk:
    """Merge rows of one or two vectors into longer ones: some operands continue through memory, others repeat the row.

    This is the case of channel-blocked images with one value per channel.
    """
    period = views[0].shape[-1]
    if period not in (lanes, 2 * lanes) or lanes == 1 or BLOCK % period:
        return Walk(views)
    goes_on, stays = [], []
    for i, v in enumerate(views):
        before, step = v.strides[-2:]
        goes_on.append(before == period * step)
        stays.append(before == 0 and step == v.itemsize and i < leader)
    if not all(a or b for a, b in zip(goes_on, stays)):
        return Walk(views)
    shape = (*views[0].shape[:-2], views[0].shape[-2] * period)
    joined = [
        replace(v, shape=shape, strides=(*v.strides[:-2], 0 if again else v.strides[-1]))
        for v, again in zip(views, stays)
    ]
    return Walk(merge_axes(tuple(joined)), frozenset(i for i, again in enumerate(stays) if again), period)


def block_lanes(target: Target, dtype: str, length: int) -> int:
    """Return the lanes of a vector for blocks of rows of `length` elements, one register or two; 0 for short rows."""
    lanes = target.lanes_of(dtype)
    if length > CHAIN * lanes:
        lanes *= 2
    while lanes > max(length, 1):
        lanes //= 2
    return lanes if lanes >= BLOCK_ROWS else 0


def access_of(view: View) -> str:
    """Return the access to a row: ``v`` whole vectors, ``s`` one value, ``g`` element by element."""
    step = view.strides[-1]
    return "v" if step == view.itemsize else "s" if step == 0 else "g"


def streams(views: Iterable[View]) -> list[int | Pointer]:
    """Return the address and column stride of each view, for the emitters' `stream_list`."""
    return [word for view in views for word in (view.at, view.strides[-1])]


class TaskGrid(Record):
    """The division of rows and columns into tasks; it depends only on the shape.

    Fields
        block: columns of one task
        blocks: tasks along a row
        rows_each: rows of one task
        tasks: all of them
    """

    block: int
    blocks: int
    rows_each: int
    tasks: int


def cut(rows: int, columns: int, elements: int) -> TaskGrid:
    """Return tasks of about `elements` elements; blocks of columns are multiples of `BLOCK`."""
    if columns >= 2 * elements:
        blocks = -(-columns // elements)
        block = -(-columns // blocks // BLOCK) * BLOCK
        blocks = -(-columns // block)
        return TaskGrid(block, blocks, 1, rows * blocks)
    rows_each = max(1, elements // max(columns, 1))
    return TaskGrid(columns, 1, rows_each, -(-rows // rows_each))


def without(x: View, axis: int) -> View:
    """Return the first slice along `axis`."""
    return replace(x, shape=without_axis(x.shape, axis), strides=without_axis(x.strides, axis))


def without_axis(numbers: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*numbers[:axis], *numbers[axis + 1 :])


def block_columns(columns: int, target: Target, most: int = 1 << 62) -> int:
    """Return the columns of a block whose sums lie on the stack; one for a GPU's thread.

    The last block is whole or has many columns as well, since its last vector may overlap the one before.
    """
    if target.code == "ptx":
        return 1
    most = min(most, target.block_columns)
    step, least = (64, 64) if most > 64 else (1, 16)
    widths = chain(range(most, 0, -step), range(most, 0, -1))  # any width, where no multiple of 64 fits
    return next(b for b in widths if columns <= b or columns % b == 0 or columns % b >= least)
