"""What the text of kernels for a GPU must not hold: calls, large stacks."""

import re

import pytest

import cgraph as cg
from cgraph.engine.cuda.engine import SIMULATED, CudaEngine, keys_of
from cgraph.engine.cuda.simulator.text import kernel_of
from cgraph.ir.graph import Node
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.store import store
from tests.ops.cases import CASES
from tests.support.gpu import GPU

MOST_STACK = 1024  # bytes a thread; the sort's counters take twice as much
LARGER = {"sort.leading_rows": 2048}


def kernels_of(case):
    """The kernels of a row in float32, with their texts."""
    case = case.in_float32()
    xs = [cg.Var(d.shape, d.dtype) for d in case.draws]
    found = case.build(*xs)
    outputs = [found] if isinstance(found, Node) else list(found)
    code = cg.compile(outputs, xs, engine=CudaEngine(SIMULATED)).program.code
    for kernel, words in dict.fromkeys(keys_of(code)):
        if isinstance(kernel, Kernel):
            symbol, text = store().ptx(kernel, words, GPU)
            yield kernel, symbol, text.decode()


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_kernel_calls_anything_or_needs_a_large_stack(case, capsys):
    for kernel, symbol, text in kernels_of(case):
        assert not re.search(r"\bcall(\.uni)?\b|\.extern", text), kernel
        assert kernel_of(text, symbol).local_nbytes <= LARGER.get(kernel.family, MOST_STACK), kernel
