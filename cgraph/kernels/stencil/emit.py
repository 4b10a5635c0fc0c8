"""Pointwise programs over the neighbourhood of each element of an array, with the result in the same array.

The array is swept along one axis; a *row* is one position of it, one or more lines of columns. A new row is computed
into a slot and copied into the array when no later row reads the old one. A task is a band of rows. Bands read each
other's outermost rows, so those new rows stay in their slots until all bands are done, and `finish` copies them. A band
has ``down + up + 1`` slots: the first ones for the rows that the previous band reads, the others used in rotation.
Memory is therefore read once, and written lines are in the cache already.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from cgraph.kernels.expression import Program
from cgraph.kernels.kernel import LINE
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.pointwise.emit import Row, lanes_for, operand_dtypes, stream_list, streams_of
from cgraph.kernels.walk.emit import offsets_of
from cgraph.record import Record

AHEAD = 1024  # bytes; so far ahead the front row is fetched


def sweep(k: Builder, program: Program, ins: str, registers: int, inner_rank: int):
    """Compute the new rows of some bands; those that another band reads stay in the slots.

    Parameters
        ins: access to a line of each operand, as in `pointwise`; the result's lines are contiguous
        registers: as in `pointwise`
        inner_rank: axes of the lines of a row
    """
    lanes = lanes_for(k, program) * registers
    dtypes = [*operand_dtypes(program, len(ins)), program[-1][1]]
    bands = SweepBands(k, len(dtypes), inner_rank, int(dtypes[-1][1:]))
    streams = streams_of(k, stream_list(bands.args.streams, len(dtypes)), dtypes, ins + "v", lanes)
    compute = Row(k, program, (len(program) - 1,), streams, len(ins), lanes, False)
    apart, ahead = k.const(1, "b1"), bands.down * bands.steps[-1] + AHEAD
    with bands.tasks() as band, k.loop(band.low, band.high) as i:
        with bands.lines(band, i) as (at, slot):
            compute.emit([*at[:-1], slot], bands.columns(i), apart, at[-1] + ahead)
        done = i - bands.up
        with k.if_(done >= band.low + bands.down):
            bands.put(band, done)


def finish(k: Builder, itemsize: int, inner_rank: int):
    """Copy the rows that `sweep` left in the slots into the array, the only one here."""
    bands = SweepBands(k, 1, inner_rank, itemsize)
    with bands.tasks() as band:
        middle = k.smaller(band.low + bands.down, band.high)
        with k.loop(band.low, middle) as i:
            bands.put(band, i)
        with k.loop(k.larger(middle, band.high - bands.up), band.high) as i:
            bands.put(band, i)


class RowBand(Record):
    """A task: rows ``low .. high``, the address of its slots, and the start of its rows in each array."""

    low: Val
    high: Val
    slots: Val
    at: list[Val]


class SweepBands:
    """The arguments of a call on `count` arrays, and the walks that they describe."""

    def __init__(self, k: Builder, count: int, inner_rank: int, itemsize: int) -> None:
        self.k, self.itemsize, self.args = k, itemsize, k.args()
        self.up, self.down = self.args.up, self.args.down
        self.bases = [base for base, _ in stream_list(self.args.streams, count)]
        self.steps = [self.args.row_steps.load(i) for i in range(count)]
        inner = self.args.inner
        self.inner = [[inner.load(a * (count + 1) + i) for i in range(count + 1)] for a in range(inner_rank)]

    @contextmanager
    def tasks(self) -> Iterator[RowBand]:
        """Yield each band of this call's tasks."""
        k, a = self.k, self.args
        with k.task_loop() as task:
            low = task % a.bands * a.each
            slots = a.slots + task * (self.up + self.down + 1) * a.slot_nbytes
            offsets = offsets_of(k, a.outer, a.outer_rank, len(self.bases), task // a.bands)
            at = [base + offset for base, offset in zip(self.bases, offsets)]
            yield RowBand(low, k.smaller(low + a.each, a.rows), slots, at)

    def columns(self, i: Val) -> Val:
        return self.k.select(i == self.args.rows - 1, self.args.last_columns, self.args.columns)

    @contextmanager
    def lines(self, band: RowBand, i: Val) -> Iterator[tuple[list[Val], Val]]:
        """Each line of row `i`: its address in every array, and in the row's slot.

        A line lies in its slot as it does in the array, seen from the beginning of a cache line.
        """
        n = i - band.low
        index = self.k.select(n < self.down, n, self.down + n % (self.up + 1))
        slot = band.slots + index * self.args.slot_nbytes
        at, line = [x + i * step for x, step in zip(band.at, self.steps)], self.k.const(0, "i8")
        with ExitStack() as nest:
            for extent, *steps in self.inner:
                j = nest.enter_context(self.k.loop(0, extent))
                at, line = [x + j * step for x, step in zip(at, steps)], line * extent + j
            yield at, slot + line * self.args.line_nbytes + (at[-1] & (LINE - 1))

    def put(self, band: RowBand, i: Val) -> None:
        """Copy row `i` from its slot into the array, with the border before and after each line."""
        k, a, dtype = self.k, self.args, f"u{self.itemsize}"
        columns, border = self.columns(i), k.pointer(a.border, dtype).load()
        with self.lines(band, i) as (at, slot):
            out = k.pointer(at[-1], dtype)
            copy_line(k, out.as_dtype("u1"), k.pointer(slot, "u1"), columns * self.itemsize)
            with k.loop(-a.before, 0) as j:
                out.store(border, j)
            with k.loop(columns, columns + a.behind) as j:
                out.store(border, j)


def copy_line(k: Builder, out: Ptr, x: Ptr, nbytes: Val) -> None:
    """Copy bytes of equal alignment: aligned vectors, and an overlapping one at each end."""
    width = k.target.lanes_of("u1")
    with k.if_else(nbytes < width) as (short, long):
        with short:
            k.copy_bytes(out, x, nbytes)
        with long:
            address = k.wrap(k.b.ptrtoint(out.v, nbytes.v.type), "i8")
            out.store(x.load(0, width), 0)
            with k.loop(-address & (width - 1), nbytes - width, width) as j:
                out.store(x.load(j, width), j)
            out.store(x.load(nbytes - width, width), nbytes - width)
