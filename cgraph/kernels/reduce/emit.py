"""Reductions with a scalar program in the load: along the axis that is contiguous in memory, or across it.

``along``: an output is one run of rows and columns; a vector of accumulators is several registers wide, and a fixed
tree joins its lanes at the end. ``across``: a vector has as many outputs as lanes, with accumulators on the stack while
the rows go by. A task is some outputs times one part of the reduced rows or columns. The division into parts is in the
arguments and depends only on sizes, so any number of threads gives the same bits.
"""

from collections.abc import Callable
from dataclasses import dataclass

from cgraph.kernels.expression import Program
from cgraph.kernels.llvm.accumulate import Accumulator, State, get, put
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import MutableValue, Ptr, Val
from cgraph.kernels.llvm.vmath import evaluate
from cgraph.kernels.pointwise.emit import RowStream, lanes_for, load_vector, operand_dtypes, stream_list, streams_of
from cgraph.kernels.views.layout import CHAIN
from cgraph.kernels.walk.emit import store_strided, walk, walk_groups


class Arrays:
    """The arrays of a call of either kernel, and the walk over the axes that are not reduced."""

    def __init__(self, k: Builder, program: Program, accesses: str, outs: tuple[str, ...], lanes: int) -> None:
        self.k, self.count, self.args = k, len(accesses), k.args()
        self.steps = [self.args.part_steps.load(i) for i in range(len(outs))]
        operands = len(accesses) - len(outs)
        dtypes = operand_dtypes(program, operands) + list(outs)
        streams = streams_of(k, stream_list(self.args.streams, self.count), dtypes, accesses, lanes)
        self.operands, self.outs = streams[:operands], streams[operands:]

    def walk_kept(self, low: Val, high: Val, body: Callable[[Val, list[Val]], None]) -> None:
        walk(self.k, self.args.kept_axes, self.args.kept_rank, self.count, low, high, body)


def along(
    k: Builder,
    kind: str,
    program: Program,
    results: tuple[int, ...],
    ins: str,
    outs: tuple[str, ...],
    registers: int,
    traits: tuple[str, ...],
) -> None:
    """`registers`: how many of them make one vector of the widest dtype.

    Traits: "short", see `Accumulator`; "one_row", each output reduces one row, so there is no walk over rows, whose
    divisions take longer than a short row.
    """
    lanes = lanes_for(k, program) * registers
    arrays = Arrays(k, program, ins + "g" * len(outs), outs, lanes)
    a = arrays.args
    reduction = Accumulator(k, kind, program[results[0]][1], len(results) > 1, "short" in traits)
    run = Along(k, reduction, program, results, arrays.operands, lanes)
    with k.task_loop() as task:
        part, group = task % a.parts, task // a.parts
        low, start = (part // a.blocks) * a.rows_each, (part % a.blocks) * a.block
        high, end = k.smaller(low + a.rows_each, a.rows), k.smaller(start + a.block, a.columns)

        def output(_: Val, offsets: list[Val]) -> None:
            run.begin()

            def row(row: Val, inner: list[Val]) -> None:
                at = [s.base + x + y + start * s.stride for s, x, y in zip(run.streams, offsets, inner)]
                run.row(at, end - start, row * a.columns + start)

            if "one_row" in traits:
                row(k.const(0, "i8"), [k.const(0, "i8")] * len(ins))
            else:
                walk(k, a.reduced_axes, a.reduced_rank, len(ins), low, high, row)
            # an index alone is the last part of a state
            state = run.finish()[-len(outs) :]
            for s, step, offset, value in zip(arrays.outs, arrays.steps, offsets[len(ins) :], state):
                k.pointer(s.base + offset + part * step, s.dtype).store(k.cast(value, s.dtype))

        arrays.walk_kept(group * a.each, k.smaller(group * a.each + a.each, a.outputs), output)


@dataclass
class Along:
    """Emits the reduction of one output. Changes: its slots are made once, for all outputs."""

    k: Builder
    reduction: Accumulator
    program: Program
    results: tuple[int, ...]
    streams: list[RowStream]
    lanes: int

    def __post_init__(self) -> None:
        self.state = self.slots(self.reduction.start(self.lanes))
        self.total = self.slots(self.reduction.total_start(self.lanes))

    def slots(self, state: State) -> list[MutableValue]:
        return [self.k.slot(x) for x in state]

    def begin(self) -> None:
        put(self.state, self.reduction.start(self.lanes))
        put(self.total, self.reduction.total_start(self.lanes))

    def flush(self) -> None:
        """Add the state to the total."""
        put(self.total, self.reduction.flush(get(self.total), get(self.state)))
        put(self.state, self.reduction.start(self.lanes))

    def finish(self) -> State:
        self.flush()
        return self.reduction.finish(self.reduction.join_lanes(get(self.total)))

    def row(self, at: list[Val], count: Val, index: Val) -> None:
        """Reduce `count` columns from the addresses `at`; the first has the flat index `index`."""
        k, width = self.k, self.lanes
        whole = count // width * width
        splats = {
            i: k.splat(k.pointer(at[i], s.dtype).load(), self.lanes)
            for i, s in enumerate(self.streams)
            if s.access == "s"
        }
        step = CHAIN * width if self.reduction.keeps_errors else 1 << 40
        with k.loop(0, whole, step) as chunk:
            with k.loop(chunk, k.smaller(chunk + step, whole), width) as column:
                self.add(self.values(at, column, splats), index + column, None)
            if self.reduction.keeps_errors:
                self.flush()
        self.tail(at, whole, count, index, splats)

    def tail(self, at: list[Val], whole: Val, count: Val, index: Val, splats: dict[int, Val]) -> None:
        """Reduce the columns from `whole` on: the last vector, which overlaps its neighbour, or a short row by way of
        the buffers. Lanes outside are ignored.
        """
        k, lanes = self.k, self.lanes
        with k.if_(count > whole), k.if_else(count >= lanes) as (then, otherwise):
            with then:
                last = count - lanes
                self.add(self.values(at, last, splats), index + last, k.iota("i8", lanes) < whole - last)
            with otherwise:
                inside = self.copy_short(at, count, splats)
                values = self.values(inside, k.const(0, "i8"), splats, in_buffer=True)
                self.add(values, index, k.iota("i8", lanes) >= count)

    def copy_short(self, at: list[Val], count: Val, splats: dict[int, Val]) -> list[Val]:
        """Copy a short row into the buffers; return their addresses."""
        k = self.k
        for i, s in enumerate(self.streams):
            if i not in splats:
                with k.loop(0, count) as j:
                    (s.buffer + j).store(k.pointer(at[i] + j * s.stride, s.dtype).load())
        return [k.wrap(k.b.ptrtoint(s.buffer.v, s.base.v.type), "i8") for s in self.streams]

    def add(self, values: list[Val], index: Val, outside: Val | None) -> None:
        """Add one vector to the state, except its lanes `outside`."""
        k, lanes = self.k, self.lanes
        value = values[0]
        if outside is not None:
            value = k.select(outside, k.const(self.reduction.identity(), value.dtype, lanes), value)
        place = None
        if self.reduction.finds_index:
            place = values[1] if self.reduction.indexed else k.iota("i8", lanes) + index
        put(self.state, self.reduction.add(get(self.state), value, place))

    def values(self, at: list[Val], column: Val, splats: dict[int, Val], in_buffer: bool = False) -> list[Val]:
        """Return the program's results for the vector at `column`."""

        def load(i: int) -> Val:
            return (
                splats[i] if i in splats else load_vector(self.k, self.streams[i], at[i], column, self.lanes, in_buffer)
            )

        values = evaluate(self.k, self.program, load, self.lanes)
        return [values[i] for i in self.results]


def across(
    k: Builder,
    kind: str,
    program: Program,
    results: tuple[int, ...],
    ins: str,
    outs: tuple[str, ...],
    written: str,
    group: int,
) -> None:
    """`group`: reduced rows that are read together. A block has at least one vector of columns."""
    lanes = lanes_for(k, program)
    arrays = Arrays(k, program, ins + written, outs, lanes)
    a = arrays.args
    reduction = Accumulator(k, kind, program[results[0]][1], len(results) > 1)
    run = Across(k, reduction, program, results, arrays.operands, lanes)
    with k.task_loop() as task:
        part, place = task % a.parts, task // a.parts
        kept_row, start = place // a.blocks * a.each, (place % a.blocks) * a.block
        width = k.smaller(start + a.block, a.columns) - start
        low = part * a.rows_each
        high = k.smaller(low + a.rows_each, a.rows)

        def outputs(_: Val, offsets: list[Val]) -> None:
            at = [s.base + o + start * s.stride for s, o in zip(arrays.operands + arrays.outs, offsets)]
            run.begin(width)

            def rows(row: Val, inner: list[list[Val]]) -> None:
                run.rows(at, inner, width, row)

            walk_groups(k, a.reduced_axes, a.reduced_rank, len(ins), low, high, group, rows)
            written_to = zip(arrays.outs, at[len(ins) :], arrays.steps)
            run.finish(width, [(s, x + part * step) for s, x, step in written_to])

        arrays.walk_kept(kept_row, k.smaller(kept_row + a.each, a.kept_rows), outputs)


class Across:
    """Emits the reduction of a block of columns; its accumulators are arrays on the stack.

    The last vector overlaps columns of the one before; it has accumulators of its own and writes equal values.
    """

    def __init__(
        self,
        k: Builder,
        reduction: Accumulator,
        program: Program,
        results: tuple[int, ...],
        streams: list[RowStream],
        lanes: int,
    ) -> None:
        self.k, self.reduction, self.program, self.results = k, reduction, program, results
        self.streams, self.lanes = streams, lanes
        columns = 1 if k.target.code == "ptx" else k.target.block_columns
        self.state = [k.stack_ptr(d, columns) for d in reduction.dtypes]
        self.total = [k.stack_ptr(d, columns) for d in reduction.total_dtypes]
        self.passed = k.slot(0, "i8")

    def load(self, arrays: list[Ptr], at: Val) -> State:
        return [a.load(at, self.lanes) for a in arrays]

    def store(self, arrays: list[Ptr], at: Val, state: State) -> None:
        for array, x in zip(arrays, state):
            array.store(x, at)

    def begin(self, width: Val) -> None:
        self.passed.value = 0
        with self.k.loop(0, width, self.lanes) as at:
            self.store(self.state, at, self.reduction.start(self.lanes))
            self.store(self.total, at, self.reduction.total_start(self.lanes))

    def rows(self, at: list[Val], inner: list[list[Val]], width: Val, row: Val) -> None:
        """Reduce some rows, from `row` on, at the byte offsets `inner`."""
        k, lanes = self.k, self.lanes
        starts = [[a + o for a, o in zip(at, offsets)] for offsets in inner]
        splats = [
            {
                i: k.splat(k.pointer(here[i], s.dtype).load(), lanes)
                for i, s in enumerate(self.streams)
                if s.access == "s"
            }
            for here in starts
        ]
        with k.loop(0, width, lanes) as place:
            column = k.smaller(place, width - lanes)
            state = self.load(self.state, place)
            for i, (here, spread) in enumerate(zip(starts, splats)):
                values = self.values(here, column, spread)
                index = None
                if self.reduction.finds_index:
                    index = values[1] if self.reduction.indexed else k.splat(row + i, lanes)
                state = self.reduction.add(state, values[0], index)
            self.store(self.state, place, state)
        self.passed.value = self.passed.value + len(inner)
        if self.reduction.keeps_errors:
            with k.if_(self.passed.value >= CHAIN):
                self.flush(width)

    def values(self, starts: list[Val], column: Val, splats: dict[int, Val]) -> list[Val]:
        """Return the program's results for the vector at `column` of one row."""

        def load(i: int) -> Val:
            return splats[i] if i in splats else load_vector(self.k, self.streams[i], starts[i], column, self.lanes)

        values = evaluate(self.k, self.program, load, self.lanes)
        return [values[i] for i in self.results]

    def flush(self, width: Val) -> None:
        """Add the chains to the totals."""
        self.passed.value = 0
        with self.k.loop(0, width, self.lanes) as at:
            total = self.reduction.flush(self.load(self.total, at), self.load(self.state, at))
            self.store(self.total, at, total)
            self.store(self.state, at, self.reduction.start(self.lanes))

    def finish(self, width: Val, targets: list[tuple[RowStream, Val]]) -> None:
        """Write the results; each target is an output and the address of its first column."""
        k = self.k
        self.flush(width)
        with k.loop(0, width, self.lanes) as place:
            column = k.smaller(place, width - self.lanes)
            values = self.reduction.finish(self.load(self.total, place))[-len(targets) :]
            for (s, start), value in zip(targets, values):
                value = k.cast(value, s.dtype)
                if s.access == "v":
                    (k.pointer(start, s.dtype) + column).store(value)
                else:
                    store_strided(k, k.pointer(start + column * s.stride, s.dtype), s.stride, value)
