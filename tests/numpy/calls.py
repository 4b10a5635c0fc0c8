"""The calls of `calls.txt`, by area, and the operands that they name. NumPy's own answer is what nodes must give.

Names
    a, b: six floats; up: six rising ones; gap: with NaN and infinities; one: a single one
    M, N, P: four by four, P symmetric and positive definite; C: ``[2, 3, 4]``; D: ``[2, 3, 3]``
    z, w: six complex numbers; hole: with NaN and infinities; Z, H: four by four, H Hermitian and positive definite
    Q: complex ``[2, 3, 4]``
    i, j: six whole numbers; yes: six bool; node, counts: the same as nodes that are computed
"""

from pathlib import Path

import numpy as np


def read_calls() -> dict[str, list[str]]:
    """Calls by area; a line that begins with ``#`` names the area of those that follow."""
    found: dict[str, list[str]] = {}
    for line in Path(__file__).with_name("calls.txt").read_text().splitlines():
        if line.startswith("# "):
            found[line[2:]] = mine = []
        else:
            mine.append(line)
    return found


AREAS = read_calls()
REFUSED = AREAS.pop("refused")
CALLS = [call for calls in AREAS.values() for call in calls]


def operands(dtype: str = "float64") -> dict[str, np.ndarray]:
    """The operands by name; floats in `dtype`, NumPy's own whole numbers and bool."""
    rng = np.random.default_rng(4)
    square = rng.random((4, 4))
    floats = {
        "a": rng.random(6), "b": rng.random(6), "up": np.sort(rng.random(6)), "one": rng.random(1),
        "gap": np.array([1.5, np.nan, -0.5, np.inf, -np.inf, 2.0]), "M": rng.random((4, 4)), "N": rng.random((4, 4)),
        "P": square @ square.T + 2 * np.eye(4), "C": rng.random((2, 3, 4)), "D": rng.random((2, 3, 3)),
    }  # fmt: skip
    others = {"i": np.array([3, 1, 0, 2, 5, 4]), "j": np.array([1, 1, 2, 0, 3, 2]), "yes": np.arange(6) % 3 != 1}
    z = {name: x.astype(np.result_type(dtype, np.complex64)) for name, x in planes(rng).items()}
    return {name: x.astype(dtype) for name, x in floats.items()} | others | z


def planes(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The complex operands."""
    z, w, Z, Q = (rng.random(s) - 0.3 + 1j * (rng.random(s) - 0.6) for s in (6, 6, (4, 4), (2, 3, 4)))
    hole = z * np.array([1, np.nan, 1, 1, np.inf, 1]) + np.array([0, 0, 1, complex(0, np.nan), 0, 0])
    return {"z": z, "w": w, "Z": Z, "Q": Q, "hole": hole, "H": Z @ Z.conj().T + 2 * np.eye(4)}
