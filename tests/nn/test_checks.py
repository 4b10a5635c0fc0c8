import numpy as np
import pytest

from cgraph.errors import InputError
from nn.checks import check_integer, check_kind


@pytest.mark.parametrize("value", [1, 5, np.int64(3), np.uint8(1)])
def test_integers_from_the_least_on_pass(value):
    check_integer("count", value, 1)


@pytest.mark.parametrize("value", [0, -1, 1.0, True, None, "3", np.float32(3)])
def test_other_values_are_named_with_the_limit(value):
    with pytest.raises(InputError, match="count is .*Pass an integer >= 1"):
        check_integer("count", value, 1)


def test_a_value_of_another_kind_is_named():
    check_kind("x", None, int | None, "an integer, or None")
    with pytest.raises(InputError, match="x is 'a'. Pass an integer, or None"):
        check_kind("x", "a", int | None, "an integer, or None")
