"""The bytes that options allow: by a budget, by rematerialisation, or by either, and shares of the work."""

import pytest

from cgraph.budget.budget import Budget, recompute_nbytes


@pytest.mark.parametrize(("nbytes", "recompute", "limit"), [
    (None, False, None), (None, True, None), (None, 0.25, None), (100, False, 100), (100, 0.25, 100),
    (None, 70, 70), (100, 70, 70), (100, 170, 100), (0, 70, 0), (100, 0, 0),
])  # fmt: skip
def test_the_limit_is_the_smaller_of_two_numbers_of_bytes(nbytes, recompute, limit):
    assert Budget(nbytes, recompute=recompute).limit == limit


def test_true_and_numbers_of_bytes_rematerialise_segments_and_shares_cheap_values():
    cases = [True, False, 0.25, 70, 0, 0.0]
    for value, want in zip(cases, [(True, 0), (False, 0), (False, 0.25), (True, 0), (True, 0), (False, 0)]):
        budget = Budget(recompute=value)
        assert (budget.recomputes_segments, budget.share) == want, value
    assert [recompute_nbytes(x) for x in cases] == [None, None, None, 70, 0, None]


def test_a_budget_is_met_by_exactly_its_bytes():
    assert [Budget(100).is_met(n) for n in (99, 100, 101)] == [True, True, False]
    assert Budget().is_met(10**18) and Budget(0).is_met(0) and not Budget(0).is_met(1)
    assert Budget(100, recompute=50).is_met(100), "the bytes of recompute count at the end"
