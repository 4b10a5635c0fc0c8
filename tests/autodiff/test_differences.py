"""Gradients, first and second, agree with central differences in float64, for every function of the table."""

import pytest

from tests.autodiff.differences import check_first, check_second
from tests.autodiff.functions import CASES


@pytest.mark.parametrize("name", CASES)
def test_gradient_and_jvp_agree_with_differences(name):
    check_first(CASES[name].f, CASES[name].draw())


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.twice])
def test_second_gradient_agrees_with_differences(name):
    check_second(CASES[name].f, CASES[name].draw())
