"""Every op's gradient where ties, zeros, negatives and corners are: between the slopes of both sides, and finite."""

import zlib

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Var
from tests.ops.cases import CASES, Case, Draw

SPECIAL = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
SIDE = 1e-6  # how far to each side
STEEPEST = 1e3  # steeper is a jump, or a slope that is infinite
ELEMENTS = 3  # of each result
OF_RANK = ("sort", "top_k")  # of three equal elements the middle one moves as the middle one of them, not as any
ROWS = [case for case in CASES if case.smooth and case.op not in OF_RANK]


def special(draw: Draw, rng: np.random.Generator) -> np.ndarray:
    """Values of which many are equal, or 0, or whole."""
    allowed = [x for x in SPECIAL if draw.low <= x <= draw.high]
    if np.dtype(draw.dtype).kind != "f" or draw.kind == "definite" or not allowed:
        return draw.array(rng)
    return rng.choice(allowed, draw.shape).astype(draw.dtype)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("case", ROWS, ids=str)
def test_a_gradient_lies_between_the_slopes_of_both_sides(case: Case):
    rng = np.random.default_rng(zlib.crc32(str(case).encode()))
    xs = [Var(d.shape, d.dtype, f"x{i}") for i, d in enumerate(case.draws)]
    found = case.build(*xs)
    results = [y for y in ([found] if isinstance(found, Node) else found) if y.dtype.kind == "f" and y.size]
    floats = [x for x in xs if x.dtype.kind == "f"]
    here = {x: special(d, rng) for x, d in zip(xs, case.draws)}
    along = {x: rng.uniform(-1, 1, x.shape) for x in floats}
    low, mid, high = (
        evaluate(results, here | {x: here[x] + side * d for x, d in along.items()}) for side in (-SIDE, 0, SIDE)
    )
    for y, a, b, c in zip(results, low, mid, high):
        slopes = np.stack([b - a, c - b]).reshape(2, -1) / SIDE
        for k in rng.permutation(y.size)[:ELEMENTS]:
            one, other = slopes[:, k]
            if not max(abs(one), abs(other)) < STEEPEST:
                continue
            gradients = evaluate(cg.gradient(cg.ravel(y)[int(k)], floats), here)
            got = sum(np.vdot(g, along[x]) for g, x in zip(gradients, floats))
            near = 1e-3 * (1 + abs(one) + abs(other))
            assert min(one, other) - near <= got <= max(one, other) + near, (y, k, one, other, got)
