"""A list of 700 calls, kept outside of the project: how many nodes answer, and that none is answered wrongly."""

from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import CgraphError
from tests.numpy.evaluated import assert_same, called, values

LIST = Path(__file__).parents[3] / "shared" / "reference" / "numpy_calls.txt"
OTHERWISE = {
    "np.empty_like(x)": "NumPy's are left as they were",
    "np.nditer(x)": "NumPy refuses it before it asks the node",
}
ALWAYS_COMPLEX = ("np.linalg.eig(S)", "np.linalg.eigvals(S)")  # where NumPy's dtype depends on values


def calls() -> list[tuple[str, str]]:
    """Every call and what it should do."""
    rows = [line.split(" | ") for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    return [(" | ".join(row[:-2]), row[-1]) for row in rows]


def operands() -> dict[str, np.ndarray]:
    """What the head of the list says of its names."""
    rng = np.random.default_rng(0)
    square = rng.random((4, 4))
    found = {"x": rng.random(6), "y": rng.random(6), "s": np.sort(rng.random(6)), "e": rng.random(1)}
    found |= {"v": np.array([0.5, np.nan, 1.5, np.inf, -1.0, 2.0]), "A": rng.random((4, 4)), "B": rng.random((4, 4))}
    found |= {"S": square @ square.T + 4 * np.eye(4), "T": rng.random((2, 2, 4)), "T2": rng.random((2, 3, 3))}
    found |= {"z": rng.random(6) + 1j * rng.random(6), "Z": rng.random((4, 4)) + 1j * rng.random((4, 4))}
    found |= {"k": np.array([3, 1, 0, 2, 5, 4]), "j": np.array([1, 1, 2, 0, 3, 2]), "m": np.arange(6) % 3 != 1}
    return found


@pytest.mark.skipif(not LIST.exists(), reason="the list of calls is not there: ../shared/reference/numpy_calls.txt")
def test_no_call_of_the_list_is_answered_wrongly():
    arrays = operands()
    nodes = {name: cg.Const(x) for name, x in arrays.items()}
    right, missing = 0, []
    for call, wanted in calls():
        if call in OTHERWISE:
            continue
        try:
            got = values(called(call, nodes))
        except CgraphError:
            if wanted.startswith("works"):
                missing.append(call)
            continue
        want = called(call, {name: x.copy() for name, x in arrays.items()})
        assert len(got) == len(want), call
        for a, b in zip(got, want):
            assert_same(a, b.astype(complex) if call in ALWAYS_COMPLEX else b)
        right += 1
    assert not missing
    assert right >= 621
