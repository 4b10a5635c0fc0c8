"""What NumPy's functions say of nodes that do not fit: the calls of `refusals.txt`, each with the whole text."""

import re
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import CgraphError
from tests.numpy.evaluated import compare, drawn

ROWS = [line.split(" | ") for line in Path(__file__).with_name("refusals.txt").read_text(encoding="utf-8").splitlines()]
SPECS = {
    "x": ((2, 3), "float64"), "v": ((3,), "float64"), "M": ((3, 3), "float64"), "c": ((2, 3, 4), "float64"),
    "s": ((), "float64"), "e": ((0,), "float64"), "i": ((3,), "int64"), "b": ((3,), "bool"), "z": ((3,), "complex128"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "says"), ROWS, ids=[row[0] for row in ROWS])
def test_a_call_is_refused_with_the_numbers_and_names_in_it(call, says):
    nodes = {name: cg.Var(*spec, name) for name, spec in SPECS.items()}
    with pytest.raises(CgraphError) as refused:
        eval(call, {"np": np, "ours": cg.numpy, **nodes})
    assert re.fullmatch(r"([\w.]+ at [^:]+:\d+: )?" + re.escape(says), str(refused.value)), refused.value


def test_every_file_with_refusals_has_a_call():
    """Of those that refuse nodes; other files refuse names or parts of calls."""
    folder = Path(cg.numpy.__file__).parent
    others = {"assign", "at", "dispatch", "elementwise", "missing", "plain", "random", "results", "table", "refused"}
    text = " ".join(call for call, _ in ROWS)
    for path in folder.glob("*.py"):
        if path.stem not in others and "raise " in path.read_text(encoding="utf-8"):
            names = re.findall(r"^@of\(np\.([\w.]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert not names or any(f"np.{name}(" in text or f"np.{name}." in text for name in names), path.stem


@pytest.mark.parametrize("call", [
    "np.partition(v, 2)", "np.partition(v, -3)", "np.argpartition(x, 1, 0)", "np.quantile(v, 1)", "np.quantile(v, 0)",
    "np.percentile(v, 100)", "np.nanpercentile(v, 0)", "np.polyder(v, 0)", "np.polyint(v, 0)", "np.polyfit(v, v, 0)",
    "np.diff(v, 0)", "np.array_split(v, 1)", "np.einsum(v, [51])", "np.einsum(x, [0, 51])", "np.histogram(v, 1)",
    "np.histogram(v, 3, (2, 2))", "np.histogram(v, [1, 1, 2])", "np.pad(v, 1, 'mean', stat_length=1)",
    "np.gradient(v, edge_order=2)", "np.gradient(x, axis=0)", "np.add.reduceat(v, [2, 0])", "np.linspace(v, v + 1, 0)",
    "np.vander(v, 0)", "np.unravel_index(i, (4,))", "np.cov(x, aweights=[0, 1, 2])", "np.linalg.tensorinv(M, 1)",
    "np.linalg.multi_dot([v, v])", "np.digitize(v, [1, 1, 2])", "np.interp(v, v[:1], v[:1])",
])  # fmt: skip
def test_a_call_at_the_limit_is_accepted(call):
    operands = {name: drawn(shape, dtype) for name, (shape, dtype) in SPECS.items() if name in "xvMi"}
    compare(call, **operands | {"i": np.array([0, 3, 1])})
