"""Kernels of exported machines stay inside the arena: a twin runs rows of the table of ops between guard bytes."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.twin import TwinEngine
from cgraph.kernels.machines import machine_named
from cgraph.system.alignment import aligned_memory
from tests.ops.cases import CASES
from tests.ops.test_cases import Drawn

GUARD, FILL = 1 << 14, 0xA5
WIDE = [
    case
    for case in CASES
    if case.op in ("scaled_dot_product_attention", "sum", "softmax", "conv2d", "matmul", "sort", "det")
]


@pytest.mark.parametrize("machine", ["cortex-m7", "neon", "wasm32", "riscv64"])
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["some", "all"])
def test_no_kernel_writes_outside_the_arena(machine, every):
    engine = TwinEngine(threads=1, of=machine_named(machine).target)
    for case in CASES if every else WIDE:
        drawn = Drawn(case)
        f = cg.compile(drawn.outputs, drawn.xs, engine=engine)
        memory = aligned_memory(f.nbytes + 2 * GUARD)
        memory[...] = FILL
        instance = f.program.instance(memory[GUARD : GUARD + f.nbytes])
        values = {x: np.array(drawn.given[y], order="C") for x, y in zip(f.inputs, drawn.xs)}
        instance.bind(values, {}, np.zeros(1, np.int64))
        instance.run()
        outside = np.concatenate([memory[:GUARD], memory[GUARD + f.nbytes :]])
        assert (outside == FILL).all(), case
