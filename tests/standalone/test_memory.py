"""Parts of the caller's memory have places of their own, and kernels of exported machines stay inside the arena: a twin
runs rows of the table of ops between guard bytes.
"""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.twin import TwinEngine
from cgraph.ir.spec import Spec
from cgraph.kernels.machines import machine_named
from cgraph.standalone.interface import CValue, Interface
from cgraph.standalone.memory import ALIGNMENT, WORDS, caller_layout
from cgraph.system.alignment import aligned_memory
from tests.ops.cases import CASES
from tests.ops.test_cases import Drawn

GUARD, FILL = 1 << 14, 0xA5
STATES = [[], [4], [1, 64, 65], [0, 130]]


@pytest.mark.parametrize("sizes", STATES, ids=str)
@pytest.mark.parametrize("arena", [0, 1, 63, 64, 65, 200])
def test_parts_of_the_callers_memory_do_not_overlap(arena, sizes):
    state = tuple(CValue(f"s{i}", Spec((n,), np.dtype("uint8")), None) for i, n in enumerate(sizes))
    layout = caller_layout(Interface("m", (), (), state), arena)
    nbytes = {"arena": arena, "stop": 8, "done": 8} | {f"state:s{i}": n for i, n in enumerate(sizes)}
    assert nbytes.keys() == layout.starts.keys() and layout.is_caller and layout.nbytes % ALIGNMENT == 0
    end = 0
    for name, start in sorted(layout.starts.items(), key=lambda x: (x[1], nbytes[x[0]])):
        assert start >= end and start % (8 if name in WORDS else ALIGNMENT) == 0
        end = start + nbytes[name]
    assert end <= layout.nbytes < end + ALIGNMENT


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
