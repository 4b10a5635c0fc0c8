"""Operands that do not fit: every op takes them or refuses them with an error of ours."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

import cgraph as cg
from cgraph.errors import CgraphError
from tests.ops.cases import CASES, Case, Draw

DTYPES = ("bool", "int8", "uint32", "int64", "float32", "float64")


def others(draw: Draw) -> Iterator[Draw]:
    """The operand with another rank, an axis that is one longer, gone or empty, or another dtype."""
    shape = draw.shape
    shapes = [(), shape[1:], shape[:-1], (2, *shape), (*shape, 2)]
    for i, n in enumerate(shape):
        shapes += [(*shape[:i], other, *shape[i + 1 :]) for other in (0, 1, n + 1)]
    yield from (replace(draw, shape=other) for other in shapes)
    yield from (replace(draw, dtype=dtype) for dtype in DTYPES if dtype != draw.dtype)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_operand_that_does_not_fit_is_refused_by_an_error_of_ours(case: Case) -> None:
    for i, draw in enumerate(case.draws):
        for other in others(draw):
            draws = (*case.draws[:i], other, *case.draws[i + 1 :])
            try:
                case.build(*(cg.Var(d.shape, d.dtype) for d in draws))
            except CgraphError:
                continue
            except Exception as error:
                raise AssertionError(f"{case} of {[(d.shape, d.dtype) for d in draws]}") from error
