"""Rows of `tests/ops/cases.py` with one length replaced: by 0, by 1, and by a longer one."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from cgraph.autodiff import gradient
from cgraph.engine.reference import evaluate
from cgraph.errors import ArgumentError, CgraphError
from tests.ops.cases import CASES, Case
from tests.ops.test_cases import Drawn
from tests.support.ops import values_of
from tests.support.tolerance import assert_close

LENGTHS = (0, 1)
LONG, LONG_OF_IMAGES = 19, 5  # beside them
LIST = Path(__file__).with_name("lengths.txt")


@pytest.fixture(autouse=True)
def quiet(capsys):
    """What `lazy_print` writes stays inside."""


def variants(case: Case) -> Iterator[tuple[str, Case, bool]]:
    """A name, the row with one length replaced wherever its draws have it, and whether its kernels run.

    Kernels run with one of the new lengths in place of each length, so that each row meets several of them.
    """
    lengths = (*LENGTHS, LONG_OF_IMAGES if any(len(draw.shape) > 3 for draw in case.draws) else LONG)
    for i, old in enumerate(sorted({n for draw in case.draws for n in draw.shape})):
        for j, new in enumerate(lengths):
            draws = [replace(d, shape=tuple(new if n == old else n for n in d.shape)) for d in case.draws]
            if new != old:
                yield f"{old}>{new}", replace(case, draws=tuple(draws)), j == (i + CASES.index(case)) % len(lengths)


def refused(case: Case) -> list[str]:
    """The replacements that the row's functions or meanings refuse; the others mean what `infer` says."""
    names = []
    for name, variant, _ in variants(case):
        try:
            drawn = Drawn(variant)
            values_of(drawn.outputs, drawn.given)
        except CgraphError as error:
            assert not isinstance(error, ArgumentError), error  # which an error of Python's becomes
            names.append(name)
    return names


def line_of(i: int, names: list[str]) -> str:
    return f"{i} {CASES[i]}: {' '.join(names) or 'nothing'}"


ROWS = [i for i, case in enumerate(CASES) if case.op not in ("kernel", "lazy_print") and case.draws]


@pytest.mark.parametrize("i", ROWS, ids=lambda i: str(CASES[i]))
def test_a_row_refuses_the_lengths_of_the_list_and_computes_with_the_others(i):
    """``python -m tests.ops.test_lengths`` writes the list."""
    names = refused(CASES[i])
    assert line_of(i, names) in LIST.read_text().splitlines()
    for name, variant, runs in variants(CASES[i]):
        if runs and name not in names:
            drawn = Drawn(variant)
            with np.errstate(all="ignore"):
                want = evaluate(drawn.outputs, drawn.given)
            got = cg.compile(drawn.outputs, drawn.xs, passes=False)(*(drawn.given[x] for x in drawn.xs))
            for one, other in zip(got, want, strict=True):
                assert_close(one, other, CASES[i].scale)


@pytest.mark.parametrize("i", [i for i in ROWS if CASES[i].smooth and CASES[i].op != "qr"], ids=lambda i: str(CASES[i]))
def test_gradients_of_a_row_with_an_axis_of_no_or_one_element_have_its_spec(i):
    """All but a decomposition of more columns than rows, which has none."""
    refusals = LIST.read_text().splitlines()[ROWS.index(i)].split(": ")[1].split()
    for name, variant, _ in variants(CASES[i]):
        if name in refusals or name.split(">")[1] not in map(str, LENGTHS):
            continue
        drawn = Drawn(variant)
        slopes = gradient(drawn.total(), drawn.floats)
        values_of(slopes, drawn.given)
        assert [x.spec for x in slopes] == [x.spec for x in drawn.floats]


if __name__ == "__main__":
    LIST.write_text("\n".join(line_of(i, refused(CASES[i])) for i in ROWS) + "\n")
