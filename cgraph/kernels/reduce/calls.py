"""Calls of reductions: sums, products, extremes and their indices, over any axes of any layout.

A reduction with few outputs is divided into parts. Their results go to a workspace, and a second call reduces them. The
number of parts depends only on sizes, never from the number of threads.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from cgraph.kernels.expression import Program
from cgraph.kernels.kernel import Call, Pointer, View, contiguous, scratch_pointer
from cgraph.kernels.reduce.block_signature import ALONG as BLOCKS
from cgraph.kernels.reduce.signature import ACROSS, ALONG
from cgraph.kernels.target import Target
from cgraph.kernels.views.layout import (
    BLOCK_ROWS,
    CHAIN,
    TASK_ELEMENTS,
    access_of,
    block_columns,
    broadcast,
    merge_axes,
    outer_table,
    permute_axes,
    streams,
)
from cgraph.kernels.views.thread_blocks import in_blocks
from cgraph.late import LateModule
from cgraph.record import Record, replace
from cgraph.system.alignment import round_up

gpu_reduce = LateModule("cgraph.kernels.reduce.gpu_calls")

KINDS = ("sum", "prod", "min", "max", "any", "all", "argmin", "argmax")
# with at least this many outputs there is one task or more for each, and no parts
MANY_OUTPUTS = 64
# most partial results
MOST_PARTIALS = 65536
# programs of at most this many instructions use four registers of accumulators, or four rows at a time
SHORT = 6


def reduce_calls(
    target: Target,
    kind: str,
    program: Program,
    out: View,
    *xs: View,
    axes: tuple[int, ...],
    workspace: View | None = None,
    whole: bool = False,
    part: int = TASK_ELEMENTS,
) -> list[Call]:
    """Reduce ``program(xs)`` over axes. The dtype of the program's result accumulates, that of `out` stores.

    The operands are broadcast to one shape, whose `axes` (each >= 0) are reduced; `out` has the other axes, or all of
    them with one element where reduced. argmin and argmax return the index (``i8`` or another integer dtype) in C order
    over the reduced axes, the first one among equals, a NaN before all.

    Operands
        workspace: at least `reduce_nbytes` bytes, for the same `part`
    Parameters
        whole: never in parts: the order of each reduction does not depend on how many there are
        part: elements of a part
    Raises
        ValueError: an unknown kind, a shape of `out` that does not fit, a workspace that is missing or too small
    """
    if kind not in KINDS:
        raise ValueError(f"there is no reduction {kind!r}. Choose one of {', '.join(KINDS)}")
    shape = np.broadcast_shapes(*(x.shape for x in xs))
    views = tuple(broadcast(x, shape) for x in xs)
    out = without_axes(out, len(shape), axes)
    expected = tuple(n for axis, n in enumerate(shape) if axis not in axes)
    if out.shape != expected:
        raise ValueError(f"{kind} of {shape} over {axes} has shape {expected}, the output has {out.shape}")
    work = ReductionJob(kind, program, (len(program) - 1,), views, axes, target, part)
    if whole and out.size:
        return [split_call(work, (out,), 1)[0]]
    return work_calls(work, out, workspace)


def reduce_nbytes(kind: str, dtype: str, shape: tuple[int, ...], axes: Sequence[int], part: int = TASK_ELEMENTS) -> int:
    """Return the bytes of workspace for values of `dtype` and `shape` reduced over `axes`, in any layout."""
    outputs = prod(n for axis, n in enumerate(shape) if axis not in axes)
    parts = most_parts(prod(shape), outputs, part)
    places = parts * outputs * 8 if kind.startswith("arg") else 0
    return 0 if parts == 1 else values_nbytes(parts, outputs, dtype) + places


def values_nbytes(parts: int, outputs: int, dtype: str) -> int:
    """Return the bytes of the partial values, rounded up so that indices may follow."""
    return round_up(parts * outputs * int(dtype[1:]), 8)


def most_parts(size: int, outputs: int, part: int) -> int:
    """Return the largest number of parts of `part` elements of a reduction of `size` elements to `outputs`."""
    if outputs == 0 or size < 2 * part:
        return 1
    return max(1, min(size // part, MOST_PARTIALS // outputs))


class ReductionJob(Record):
    """A reduction's arguments, shared by the functions below."""

    kind: str
    program: Program
    results: tuple[int, ...]
    xs: tuple[View, ...]
    axes: tuple[int, ...]
    target: Target
    part: int

    @property
    def dtype(self) -> str:
        """The dtype of the values that are reduced."""
        return self.program[self.results[0]][1]

    @property
    def finds_index(self) -> bool:
        return self.kind.startswith("arg")

    @property
    def lanes(self) -> int:
        return min(self.target.lanes_of(instruction[1]) for instruction in self.program)


def work_calls(work: ReductionJob, out: View, workspace: View | None) -> list[Call]:
    """Return one call, or one for the parts and one that joins them."""
    outputs = out.size
    if outputs == 0:
        return []
    most = most_parts(prod(work.xs[0].shape), outputs, work.part)
    if most > 1:
        places = Pointer("workspace") if workspace is None else workspace.at
        values = contiguous(places, out.shape, work.dtype)
        partials: tuple[View, ...] = (values,)
        if work.finds_index:
            partials = (values, contiguous(places + values_nbytes(most, outputs, work.dtype), out.shape, "i8"))
        call, parts = split_call(work, partials, most)
        if parts > 1:
            scratch_pointer(workspace, reduce_nbytes(work.kind, work.dtype, work.xs[0].shape, work.axes, work.part))
            return [call, *joining_calls(work, partials, parts, out)]
    return [split_call(work, (out,), 1)[0]]


def joining_calls(work: ReductionJob, partials: tuple[View, ...], parts: int, out: View) -> list[Call]:
    """Return the call that reduces the results of the parts."""
    xs = tuple(contiguous(p.at, (parts, *p.shape), p.dtype) for p in partials)
    loads: Program = tuple(("load", x.dtype, i) for i, x in enumerate(xs))
    again = replace(work, program=loads, results=tuple(range(len(xs))), xs=xs, axes=(0,))
    return [split_call(again, (out,), 1)[0]]


def split_call(work: ReductionJob, outs: tuple[View, ...], most: int) -> tuple[Call, int]:
    """Return the call that reduces in at most `most` parts, and their number."""
    over_kept, reduced = split_axes(work, outs)
    size = reduced[0].size
    each = size if over_kept[0].size >= MANY_OUTPUTS else -(-size // most)
    blocks = in_blocks(
        work.target, gpu_reduce.reduced_calls, work.kind, work.program, work.results, over_kept, reduced, each
    )
    if blocks is not None:
        return blocks[0], -(-size // max(each, 1)) or 1
    return (across_call if goes_across(work, over_kept, reduced) else along_call)(work, over_kept, reduced, most)


def split_axes(work: ReductionJob, outs: tuple[View, ...]) -> tuple[tuple[View, ...], tuple[View, ...]]:
    """Return operands and outputs over the other axes, and operands over the reduced ones, merged to two axes or more.

    Axes are sorted by stride; reduced ones keep their order if the reduction returns an index along them.
    """
    xs, rank = work.xs, len(work.xs[0].shape)
    kept_axes = [a for a in range(rank) if a not in work.axes]
    reduced = [a for a in range(rank) if a in work.axes]

    def stride_first(axis: int) -> tuple[int, ...]:
        return tuple(-abs(x.strides[axis]) for x in xs)

    places = sorted(range(len(kept_axes)), key=lambda i: stride_first(kept_axes[i]))
    if not work.finds_index:
        reduced.sort(key=stride_first)
    over_kept = permute_axes(permute_axes(xs, kept_axes), places) + permute_axes(outs, places)
    return merge_axes(over_kept), merge_axes(permute_axes(xs, reduced))


def goes_across(work: ReductionJob, over_kept: tuple[View, ...], reduced: tuple[View, ...]) -> bool:
    """Return True if vectors should have neighbouring outputs, False if elements of one output."""
    columns = over_kept[0].shape[-1]
    if columns < work.lanes:
        return False
    if reduced[0].size < 2 * work.lanes:
        return True
    return "v" not in map(access_of, reduced) and "v" in map(access_of, over_kept[: len(reduced)])


def along_call(
    work: ReductionJob, over_kept: tuple[View, ...], reduced: tuple[View, ...], most: int
) -> tuple[Call, int]:
    columns, rows, outputs = reduced[0].shape[-1], prod(reduced[0].shape[:-1]), over_kept[0].size
    if rows == 1 and is_short(work, reduced):
        return block_call(work, over_kept, reduced), 1
    if most == 1 or outputs >= MANY_OUTPUTS:
        block, rows_each = columns, rows
    elif rows >= most:
        block, rows_each = columns, -(-rows // most)
    else:
        block, rows_each = round_up(-(-columns // (most // rows)), 64), 1
    blocks = -(-columns // max(block, 1)) or 1
    parts = blocks * (-(-rows // max(rows_each, 1)) or 1)
    each = max(1, work.target.task_elements // max(reduced[0].size, 1)) if parts == 1 else 1
    access = "".join(map(access_of, reduced))
    registers = 1 if "g" in access else 4 if len(work.program) <= SHORT and not work.finds_index else 2
    registers = registers_for(block, registers, work.lanes)
    holds = {"short": work.kind == "sum" and reduced[0].size <= CHAIN * work.lanes, "one_row": rows == 1}
    traits = tuple(name for name, here in holds.items() if here)
    outs = over_kept[len(reduced) :]
    kept_rank, reduced_rank = len(over_kept[0].shape), len(reduced[0].shape) - 1
    call = ALONG.call(
        (work.kind, work.program, work.results, access, tuple(v.dtype for v in outs), registers, traits),
        -(-outputs // each) * parts,
        outputs=outputs, each=each, parts=parts, blocks=blocks, block=block, rows_each=rows_each,
        rows=rows, columns=columns, kept_rank=kept_rank, reduced_rank=reduced_rank, part_steps=steps_of(outs),
        streams=streams(reduced) + [word for v in outs for word in (v.at, 0)],
        kept_axes=outer_table(over_kept, kept_rank), reduced_axes=outer_table(reduced, reduced_rank),
    )  # fmt: skip
    return call, parts


def is_short(work: ReductionJob, reduced: tuple[View, ...]) -> bool:
    """Return True for rows of some vectors, whose total takes as long as their elements."""
    is_plain = len(work.program) <= SHORT and not work.finds_index and work.dtype[0] in "fiu"
    fits = work.lanes >= BLOCK_ROWS and work.lanes <= reduced[0].size <= 2 * CHAIN * work.lanes
    return is_plain and fits and "g" not in map(access_of, reduced)


def block_call(work: ReductionJob, over_kept: tuple[View, ...], reduced: tuple[View, ...]) -> Call:
    """Return a call that reduces some short rows together."""
    columns, outputs, rank = reduced[0].size, over_kept[0].size, len(over_kept[0].shape)
    each, outs = max(1, work.target.task_elements // columns), over_kept[len(reduced) :]
    registers = 1 if columns <= CHAIN * work.lanes else 2
    access = "".join(map(access_of, reduced))
    return BLOCKS.call(
        (work.kind, work.program, access, tuple(v.dtype for v in outs), registers), -(-outputs // each),
        outputs=outputs, each=each, columns=columns, rank=rank,
        streams=streams(reduced) + [word for v in outs for word in (v.at, 0)],
        axes=outer_table(over_kept, rank),
    )  # fmt: skip


def registers_for(columns: int, most: int, lanes: int) -> int:
    """Return how many registers make a vector for rows of `columns`, at most `most`, a power of two.

    Columns that do not fill a vector cost one more. So rows shorter than two vectors take the widest that divides them,
    else the widest that is not longer than a row.
    """
    if columns >= 2 * most * lanes:
        return most
    fitting = [r for r in (4, 2, 1) if r <= most and r * lanes <= max(columns, lanes)]
    return next((r for r in fitting if columns % (r * lanes) == 0), fitting[0])


def across_call(
    work: ReductionJob, over_kept: tuple[View, ...], reduced: tuple[View, ...], most: int
) -> tuple[Call, int]:
    columns, rows = over_kept[0].shape[-1], reduced[0].size
    kept_rows, block = prod(over_kept[0].shape[:-1]), block_columns(columns, work.target)
    blocks = -(-columns // block)
    rows_each = max(1, -(-rows // most))
    parts = -(-rows // rows_each) or 1
    each = max(1, work.target.task_elements // max(rows * block, 1)) if parts == 1 else 1
    access = "".join(map(access_of, over_kept[: len(reduced)]))
    written = "".join(map(access_of, over_kept[len(reduced) :])).replace("s", "g")
    group = 4 if len(work.program) <= SHORT else 1
    outs = over_kept[len(reduced) :]
    kept_rank, reduced_rank = len(over_kept[0].shape) - 1, len(reduced[0].shape)
    call = ACROSS.call(
        (work.kind, work.program, work.results, access, tuple(v.dtype for v in outs), written, group),
        -(-kept_rows // each) * blocks * parts,
        kept_rows=kept_rows, each=each, parts=parts, blocks=blocks, block=block, rows_each=rows_each,
        rows=rows, columns=columns, kept_rank=kept_rank, reduced_rank=reduced_rank, part_steps=steps_of(outs),
        streams=streams(over_kept),
        kept_axes=outer_table(over_kept, kept_rank), reduced_axes=outer_table(reduced, reduced_rank),
    )  # fmt: skip
    return call, parts


def steps_of(outs: tuple[View, ...]) -> list[int]:
    """Return the bytes between the results of one part and those of the next, per output."""
    return [out.size * out.itemsize for out in outs]


def without_axes(out: View, rank: int, axes: tuple[int, ...]) -> View:
    """Return `out` without its reduced axes of one element, if it has them.

    Raises
        ValueError: `out` has neither the other axes nor all of them
    """
    if len(out.shape) == rank - len(axes):
        return out
    if len(out.shape) != rank or any(out.shape[a] != 1 for a in axes):
        raise ValueError(f"an output of shape {out.shape} does not fit {rank} axes reduced over {axes}")
    return permute_axes((out,), [a for a in range(rank) if a not in axes])[0]
