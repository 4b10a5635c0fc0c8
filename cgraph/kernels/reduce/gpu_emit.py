"""Reductions of any layout with a scalar program in the load, a team of threads for each result."""

from cgraph.kernels.expression import Program
from cgraph.kernels.llvm.accumulate import Accumulator
from cgraph.kernels.llvm.gpu_build import GpuBuilder, block
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.llvm.vmath import evaluate
from cgraph.kernels.pointwise.emit import operand_dtypes
from cgraph.kernels.team.gpu_emit import BlockTeam, offsets
from cgraph.kernels.team.gpu_signature import THREADS


@block(THREADS)
def teams(
    k: GpuBuilder,
    kind: str,
    program: Program,
    results: tuple[int, ...],
    outs: tuple[str, ...],
    operands: int,
    ranks: tuple[int, int],
    team: tuple[int, bool],
) -> None:
    a, own = k.args(), BlockTeam(k, *team)
    reduction = Accumulator(k, kind, program[results[0]][1], len(results) > 1)
    dtypes = operand_dtypes(program, operands)
    number, part = k.block_digits(a.parts)
    output = number * own.teams + own.number
    count = operands + len(outs)
    there = offsets(k, a.kept_axes, ranks[0], count, k.smaller(output, a.outputs - 1))
    bases = [(a.arrays + i).load() + there[i] for i in range(count)]
    low = part * a.each

    def value(at: Val) -> tuple[Val, Val | None]:
        inner = offsets(k, a.reduced_axes, ranks[1], operands, at)
        values = evaluate(k, program, lambda i: k.pointer(bases[i] + inner[i], dtypes[i]).load(), 0)
        x, *index = (values[i] for i in results)
        return x, (index[0] if index else at) if reduction.finds_index else None

    state = own.reduced(reduction, low, k.smaller(low + a.each, a.size), value)[-len(outs) :]
    with k.if_((own.lane == 0) & (output < a.outputs)):
        for i, (x, dtype) in enumerate(zip(state, outs)):
            k.pointer(bases[operands + i] + part * a.part_steps.load(i), dtype).store(k.cast(x, dtype))
