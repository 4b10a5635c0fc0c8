"""Rows of the table of ops, exported for machines that are emulated, give the bits of their twins.

Several rows are one function. `make slow` runs a few groups for each machine; all of them:
``CGRAPH_ALL_ROWS=1 python -m pytest tests/standalone/test_rows.py``.
"""

import os

import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.kernels.kernel import Kernel
from tests.ops.cases import CASES, Case
from tests.ops.test_cases import Drawn
from tests.support.exported import require, run_export

GROUP, SOME = 24, 2
EMULATED = ("neon", "cortex-m7", "cortex-m55", "wasm32", "riscv64")
GROUPS = [CASES[i::GROUP] for i in range(GROUP)]
SHOWN = range(GROUP if "CGRAPH_ALL_ROWS" in os.environ else SOME)
pytestmark = pytest.mark.slow


def is_native(case: Case, machine: str) -> bool:
    """Return True if no step of a row is a Python function."""
    drawn = Drawn(case)
    code = cg.compile(drawn.outputs, drawn.xs, engine=cg.ExportEngine(machine)).program.code
    return all(isinstance(k, Kernel) for k in code.kernels)


@pytest.mark.parametrize("machine", EMULATED)
@pytest.mark.parametrize("number", SHOWN)
def test_rows_of_the_table_of_ops_have_the_bits_of_the_twin(machine, number, tmp_path):
    if machine == "wasm32":
        require("wasm-ld", "lld")
    cases = [case for case in GROUPS[number] if is_native(case, machine)]
    assert len(cases) >= len(GROUPS[number]) // 2
    drawn = [Drawn(case) for case in cases]
    inputs = [cg.Var(x.shape, x.dtype, f"x{i}_{j}") for i, d in enumerate(drawn) for j, x in enumerate(d.xs)]
    values = [d.given[x] for d in drawn for x in d.xs]
    rest, outputs = iter(inputs), []
    for case in cases:
        built = case.build(*(next(rest) for _ in case.draws))
        outputs += [built] if isinstance(built, cg.Node) else list(built)
    cg.export(outputs, inputs, tmp_path / "m", target=machine, check=values)
    run = run_export(tmp_path / "m")
    assert run.status == 0, run.text
    assert run.outputs == (tmp_path / "m/check/out.bin").read_bytes()


def test_every_row_with_a_python_function_is_refused_by_name(tmp_path):
    refused = 0
    for case in CASES:
        if case.op not in ("inv", "eigh", "lazy_print", "svd"):
            continue
        drawn = Drawn(case)
        f = cg.compile(drawn.outputs, drawn.xs, engine=cg.ExportEngine("cortex-m7"))
        if all(isinstance(k, Kernel) for k in f.program.code.kernels):
            continue
        with pytest.raises(FormatError, match="Python function cannot be exported"):
            f.export(tmp_path / "m")
        refused += 1
    assert refused
