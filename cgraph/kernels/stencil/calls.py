"""Calls of a pointwise program whose result replaces an array that it reads around each element."""

from collections.abc import Sequence
from math import prod
from typing import Any

from cgraph.kernels.expression import Program
from cgraph.kernels.kernel import LINE, Call, Pointer, View, scratch_pointer
from cgraph.kernels.move.calls import constant
from cgraph.kernels.pointwise.calls import LONG, check_dtypes
from cgraph.kernels.stencil.signature import FINISH, SWEEP
from cgraph.kernels.views.layout import access_of, axis_table, outer_table, streams
from cgraph.record import Record

PIECES = 64  # of the last axis when it is swept, at least, as far as they have
LEAST_PIECE, MOST_PIECE = 64, 2048  # columns
BANDS = 8  # at least, as far as they have
FEW = 5  # rows for each slot
MANY = 32  # rows for each slot: slots cost little then, and more bands can be had
BAND_ELEMENTS = 16384  # at least

Shift = tuple[int, ...]
Ends = tuple[int, int, int | float | bool]


class Sweep(Record):
    """The sweep of an array, row by row. A row is one position of an axis, or a piece of the last axis.

    Fields
        axis: the swept axis
        up, down: rows before and after that a row of the result reads
        batches, rows, lines, columns: positions outside the axis, along it, inside it, and along the last axis
        itemsize: of the result
    """

    axis: int
    up: int
    down: int
    batches: int
    rows: int
    lines: int
    columns: int
    itemsize: int

    @property
    def slots(self) -> int:
        """New rows that a band buffers."""
        return self.up + self.down + 1

    @property
    def each(self) -> int:
        """Rows of a band."""
        enough = min(MANY * self.slots, max(FEW * self.slots, self.rows // BANDS))
        least = max(enough, BAND_ELEMENTS // (self.lines * self.columns))
        return -(-self.rows // max(1, self.rows // least))

    @property
    def bands(self) -> int:
        return -(-self.rows // self.each)

    @property
    def tasks(self) -> int:
        return self.batches * self.bands

    @property
    def line_nbytes(self) -> int:
        """Bytes for a line in a slot, at any offset from a cache line."""
        return (-(-self.columns * self.itemsize // LINE) + 1) * LINE

    @property
    def nbytes(self) -> int:
        """Bytes of all slots."""
        return self.tasks * self.slots * self.lines * self.line_nbytes


def sweep_of(shape: tuple[int, ...], itemsize: int, shifts: Sequence[Shift]) -> Sweep | None:
    """Return the sweep for a result of this shape; `shifts` are the offsets of the array's windows from it along each
    axis.

    None if nothing is shifted: elements can then be replaced one by one.
    """
    moved = [axis for axis in range(len(shape)) if any(s[axis] for s in shifts)]
    if not moved or not prod(shape):
        return None
    axis, last = moved[0], len(shape) - 1
    up, down = max(0, -min(s[axis] for s in shifts)), max(0, *(s[axis] for s in shifts))
    if axis < last:
        size = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 : last]), shape[last]
        return Sweep(axis, up, down, *size, itemsize)
    if last and shape[last] < 2 * MOST_PIECE:  # a whole line at a time: none reads another
        return Sweep(last - 1, 0, 0, prod(shape[: last - 1]), shape[last - 1], 1, shape[last], itemsize)
    piece = min(MOST_PIECE, max(LEAST_PIECE, shape[last] // PIECES))
    size = prod(shape[:last]), -(-shape[last] // piece), 1, piece
    return Sweep(last, -(-up // piece), -(-down // piece), *size, itemsize)


def stencil_calls(
    program: Program, sweep: Sweep, out: View, xs: Sequence[View], workspace: View | None, ends: Ends = (0, 0, 0)
) -> list[Call]:
    """Compute ``out[...] = program(xs[...])``, where some of `xs` are shifted views of the array that `out` lies in.

    Parameters
        out: contiguous along its last axis
        xs: of the shape of `out`
        workspace: at least ``sweep.nbytes`` bytes, from the beginning of a cache line on
        ends: elements of the array before and after each line of `out`, and their new value
    """
    slots = scratch_pointer(workspace, sweep.nbytes)
    check_dtypes(program, (len(program) - 1,), (out,), tuple(xs))
    ins = "".join(access_of(x) for x in xs)
    registers = 1 if "g" in ins or len(program) > LONG else 2
    axes = max(0, len(out.shape) - 2 - sweep.axis)
    return [
        SWEEP.call((program, ins, registers, axes), sweep.tasks, **arguments(sweep, (*xs, out), slots, ends)),
        FINISH.call((out.itemsize, axes), sweep.tasks, **arguments(sweep, (out,), slots, ends)),
    ]


def arguments(s: Sweep, views: tuple[View, ...], slots: Pointer, ends: Ends) -> dict[str, Any]:
    """Return the arguments of a call over these arrays."""
    last = len(views[0].shape) - 1
    in_pieces = s.axis == last
    rest = views[0].shape[last] - (s.rows - 1) * s.columns if in_pieces else s.columns
    before, behind, value = ends
    return {
        "bands": s.bands, "each": s.each, "rows": s.rows, "up": s.up, "down": s.down,
        "columns": s.columns, "last_columns": rest, "before": before, "behind": behind,
        "border": constant(value, views[-1].dtype).at,
        "slots": slots, "slot_nbytes": s.lines * s.line_nbytes, "line_nbytes": s.line_nbytes,
        "streams": streams(views),
        "row_steps": [v.strides[s.axis] * (s.columns if in_pieces else 1) for v in views],
        "inner": axis_table(views, range(s.axis + 1, last)),
        "outer_rank": s.axis, "outer": outer_table(views, s.axis),
    }  # fmt: skip
