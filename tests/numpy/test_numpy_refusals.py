"""What NumPy's functions say of nodes that do not fit: the calls of `refusals.txt`, each with the whole text."""

import re
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import CgraphError

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
