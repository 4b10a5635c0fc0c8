"""Reductions of short contiguous rows, some rows at a time."""

from cgraph.kernels.expression import Program
from cgraph.kernels.llvm.accumulate import Accumulator
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.llvm.vmath import evaluate
from cgraph.kernels.pointwise.emit import RowStream, lanes_for, load_vector, operand_dtypes, stream_list, streams_of
from cgraph.kernels.pointwise.row_block import RowBlock
from cgraph.kernels.views.layout import BLOCK_ROWS
from cgraph.kernels.walk.emit import walk_groups


def along(k: Builder, kind: str, program: Program, ins: str, outs: tuple[str, ...], registers: int) -> None:
    """`registers`: how many of them make one vector of the widest dtype; `ins` are ``v`` or ``s``; one output."""
    lanes = lanes_for(k, program) * registers
    a, accesses = k.args(), ins + "g"
    dtypes = [*operand_dtypes(program, len(ins)), *outs]
    *operands, out = streams_of(k, stream_list(a.streams, len(accesses)), dtypes, accesses, lanes)
    block = RowBlock(k, a.columns, lanes)
    reduction = Accumulator(k, kind, program[-1][1], short=True)

    def group(_: Val, offsets: list[list[Val]]) -> None:
        rows = [ProgramRow(k, program, operands, [s.base + o for s, o in zip(operands, row)], lanes) for row in offsets]
        values, lane = block.total(reduction, [r.value(block.end) for r in rows], lambda c: [r.value(c) for r in rows])
        for row, i in zip(offsets, lane):
            k.pointer(out.base + row[-1], out.dtype).store(k.cast(k.lane(values, i), out.dtype))

    with k.task_loop() as task:
        low = task * a.each
        walk_groups(k, a.axes, a.rank, len(accesses), low, k.smaller(low + a.each, a.outputs), BLOCK_ROWS, group)


class ProgramRow:
    """The program's values along a row; `starts` are the addresses of its operands."""

    def __init__(self, k: Builder, program: Program, streams: list[RowStream], starts: list[Val], lanes: int) -> None:
        self.k, self.program, self.streams, self.starts, self.lanes = k, program, streams, starts, lanes
        self.splats = {
            i: k.splat(k.pointer(starts[i], s.dtype).load(), lanes) for i, s in enumerate(streams) if s.access == "s"
        }

    def value(self, column: Val) -> Val:
        """Return the program's result for the vector at `column`."""

        def load(i: int) -> Val:
            if i in self.splats:
                return self.splats[i]
            return load_vector(self.k, self.streams[i], self.starts[i], column, self.lanes)

        return evaluate(self.k, self.program, load, self.lanes)[-1]
