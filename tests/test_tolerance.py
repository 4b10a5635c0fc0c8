"""Tolerances stand in one file, by name and with a reason, and let no size of number pass unseen."""

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.tolerance import NEAR, assert_close, assert_near, near

TESTS = Path(__file__).parent
OWN = TESTS / "support" / "tolerance.py"
COMPARISONS = {"allclose", "approx", "isclose", "assert_allclose", "assert_almost_equal", "assert_approx_equal"}
COMPARISONS |= {
    "assert_array_almost_equal",
    "assert_array_almost_equal_nulp",
    "assert_array_max_ulp",
    "assertAlmostEqual",
}
KEYWORDS = {"rtol", "atol", "rel_tol", "abs_tol", "decimal", "places", "maxulp", "nulp"}


def trees() -> Iterator[tuple[Path, ast.AST]]:
    for path in sorted(TESTS.rglob("*.py")):
        text = path.read_text()
        if path != OWN and any(word in text for word in COMPARISONS | KEYWORDS):  # others need not be parsed
            yield path, ast.parse(text)


def name_of(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def refused(tree: ast.AST) -> list[int]:
    """The lines that compare by a tolerance of their own."""
    calls = [x for x in ast.walk(tree) if isinstance(x, ast.Call)]
    return [x.lineno for x in calls if name_of(x.func) in COMPARISONS or KEYWORDS & {k.arg for k in x.keywords}]


def test_no_test_has_a_tolerance_of_its_own():
    own = [f"{path.relative_to(TESTS)}:{line}" for path, tree in trees() for line in refused(tree)]
    assert own == [], "name a tolerance of tests/support/tolerance.py: assert_near(got, want, name) or near(want, name)"


@pytest.mark.parametrize(
    "text",
    [
        "np.testing.assert_allclose(x, y)",
        "assert x == pytest.approx(y, rel=1e-3)",
        "assert math.isclose(x, y)",
        "compare(x, y, atol=LIMIT)",
        "self.assertAlmostEqual(x, y, places=3)",
    ],
)
def test_a_tolerance_is_seen_however_it_is_written(text):
    assert refused(ast.parse(text)) == [1]


def test_every_tolerance_has_a_reason_and_is_used():
    assert all(len(tolerance.why) > 10 for tolerance in NEAR.values())
    texts = "".join(path.read_text() for path in [*TESTS.rglob("*.py")] if path.name != Path(__file__).name)
    assert [name for name in NEAR if texts.count(f'"{name}"') < 2] == []


def test_no_tolerance_lets_everything_pass():
    for name, tolerance in NEAR.items():
        assert tolerance.rtol or tolerance.atol or tolerance.of_terms, name
        assert tolerance.is_in_ulps or max(tolerance.rtol, tolerance.of_terms) <= 0.1 or "terms" in tolerance.why, name


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("size", [1e-30, 1e-6, 1.0, 1e30])
def test_numbers_of_any_size_are_compared(dtype, size):
    x = (np.array([0.5, 1.0, -0.25]) * size).astype(dtype)
    other = (x * np.array([1, 1, 1.001])).astype(dtype)
    assert_close(x, x.copy(), terms=np.abs(x))
    with pytest.raises(AssertionError):
        assert_close(other, x, terms=np.abs(x))


@pytest.mark.parametrize("size", [1e-5, 1.0, 1e30])
def test_a_wrong_number_is_seen_without_terms_where_it_is_more_than_some_ulps_of_one(size):
    x = np.array([0.5, 1.0, -0.25], "float32") * np.float32(size)
    assert_close(x, x.copy())
    with pytest.raises(AssertionError):
        assert_close(x * np.array([1, 1.5, 1], "float32"), x)


def test_small_elements_are_compared_where_the_terms_of_each_are_known():
    want = np.array([1e3, 1e-4], "float32")
    got = np.array([1e3, 2e-4], "float32")
    assert_close(got, want)
    assert_close(got, want, terms=np.array([1e3, 10.0]))
    with pytest.raises(AssertionError, match="0.0002"):
        assert_close(got, want, terms=np.abs(want))


def test_a_result_of_terms_that_cancel_may_be_as_wrong_as_they_are():
    got, want = np.array([1e-5], "float32"), np.array([0.0], "float32")
    for terms in (None, 0.1, np.array([0.1])):
        with pytest.raises(AssertionError):
            assert_close(got, want, terms=terms)
    assert_close(got, want, terms=1.0)


def test_infinities_and_nan_are_compared_exactly():
    x = np.array([np.inf, np.nan, 1.0])
    assert_close(x, x.copy(), terms=np.ones(3))
    for other in ([-np.inf, np.nan, 1.0], [np.inf, 0.0, 1.0], [1e300, np.nan, 1.0]):
        for terms in (None, np.ones(3)):
            with pytest.raises(AssertionError):
                assert_close(np.array(other), x, terms=terms)


def test_a_kind_without_a_name_is_refused():
    with pytest.raises(KeyError):
        assert_near(1.0, 1.0, "about")
    assert 1.0 == near(1.0 + 1e-8, "float32 formulas") != 1.1
