"""Rows of `tests/ops/cases.py` with operands of integers: the engines agree whatever the numbers are."""

from collections.abc import Callable

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import CgraphError
from tests.ops.cases import CASES
from tests.ops.test_cases import Drawn
from tests.support.tolerance import assert_close

USERS = ("delay", "kernel", "lazy_print")
ROWS = [case for case in CASES if case.op not in USERS and any(np.dtype(d.dtype).kind in "iu" for d in case.draws)]
BESIDE = (*range(-8, 9), 19, -20, 100)


def outcome(function: Callable, arrays: list[np.ndarray]) -> list[np.ndarray] | type[CgraphError]:
    """The results, or the class of the error."""
    try:
        return function(*arrays)
    except CgraphError as error:
        return type(error)


@pytest.mark.parametrize("case", ROWS, ids=str)
def test_a_number_gives_the_same_results_or_the_same_error_on_each_engine(case):
    """Ends of the dtype, and numbers around the lengths of axes, in the last element of each operand in turn."""
    drawn = Drawn(case)
    arrays = [drawn.given[x] for x in drawn.xs]
    meant, compiled = (cg.compile(drawn.outputs, drawn.xs, engine=name) for name in ("reference", "cpu"))
    for i, x in enumerate(arrays):
        ends = np.iinfo(x.dtype) if x.dtype.kind in "iu" else None
        numbers = {n for n in (ends.min, ends.max, *BESIDE) if ends.min <= n <= ends.max} if ends else ()
        for n in numbers:
            x = x.copy()
            x.reshape(-1)[-1] = n
            got, want = (outcome(f, [*arrays[:i], x, *arrays[i + 1 :]]) for f in (compiled, meant))
            if isinstance(want, type):
                assert got is want, n
                continue
            for one, other in zip(got, want, strict=True):
                assert_close(one, other, case.scale)
