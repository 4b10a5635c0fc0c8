"""Operands that hold one NaN or infinity: the same results are NaN by the meaning and by the CPU engine."""

import zlib

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from tests.ops.cases import CASES, Case
from tests.ops.test_cases import Drawn, nodes_of

SPECIAL = (np.nan, np.inf, -np.inf)
DECOMPOSED = {"norm", "svd", "svdvals", "eig", "eigh", "qr", "inv", "solve", "cholesky", "det", "slogdet", "logdet"}
OPS = {
    **dict.fromkeys(DECOMPOSED, "LAPACK promises nothing for such numbers: some of its loops refuse, some do not end"),
}
ROWS = {"kernel-dtypes": "a user's own Python function, which cannot round an infinity"}
OPERANDS = {
    **{
        (f"{kind}{axes}d", 1): "some kernels multiply filters with the zeros of padding and gaps, others leave them out"
        for kind in ("conv", "conv_transpose")
        for axes in (1, 2, 3)
    },
    ("block_matmul", 2): "kernels multiply the sum of a block by its scale, not each number",
    ("scaled_dot_product_attention", 2): "kernels leave out some of the keys that a query does not see, not all",
}
VALUES = {
    **dict.fromkeys(("digamma", "trigamma"), ([-np.inf], "no limit there: NaN from the kernel, infinity from SciPy")),
    **dict.fromkeys(
        ("fft", "ifft", "rfft", "irfft", "complex-fft", "complex-fftn", "complex-rfft", "complex-irfft"),
        ([-np.inf, np.inf], "an infinity times a root of unity is NaN where the root has a part 0, in another order"),
    ),
}


def rows() -> list[Case]:
    floats = [case for case in CASES if any(d.dtype.startswith("float") for d in case.draws)]
    return [case for case in floats if case.op not in OPS and str(case) not in ROWS]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("case", rows(), ids=str)
def test_one_element_that_is_not_finite_reaches_the_same_results(case, capsys):
    """An element of each float operand in turn, results and gradients; a product with 0 would spread it."""
    drawn = Drawn(case)
    outputs = nodes_of(drawn, case.smooth)
    function = cg.compile(outputs, drawn.xs)
    rng = np.random.default_rng(zlib.crc32(str(case).encode()))
    for i, x in enumerate(drawn.xs):
        if x.dtype.kind not in "fc" or not x.size or (case.op, i) in OPERANDS:
            continue
        for special in SPECIAL:
            if special in (VALUES.get(str(case)) or VALUES.get(case.op, ([],)))[0]:
                continue
            given = {**drawn.given, x: drawn.given[x].copy()}
            given[x].reshape(-1)[rng.integers(x.size)] = special
            with np.errstate(all="ignore"):
                want = evaluate(outputs, given)
            for got, expected in zip(function(*(given[v] for v in drawn.xs)), want):
                np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))


def test_every_exception_is_of_some_row():
    assert {case.op for case in CASES} >= {*OPS, *(op for op, _ in OPERANDS)}
    assert {x for case in CASES for x in (case.op, str(case))} >= {*ROWS, *VALUES}
