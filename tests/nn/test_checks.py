import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.errors import InputError, ShapeError
from nn.checks import check_axes, check_integer, check_kind


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


@pytest.mark.parametrize(
    ("axes", "ndim", "fits"),
    [
        ("n ...", 0, False), ("n ...", 1, True), ("n ...", 4, True), ("n t features", 2, False),
        ("n t features", 3, True), ("n t features", 4, False), ("n c ...", 1, False), ("n c ...", 2, True),
    ],
)  # fmt: skip
def test_named_axes_are_all_of_them_and_an_ellipsis_is_any_number_more(axes, ndim, fits):
    x = cg.Var((2,) * ndim, name="x")
    if fits:
        check_axes(nn.Flatten(), x, axes)
        return
    with pytest.raises(ShapeError) as error:
        check_axes(nn.Flatten(), x, axes)
    assert str(error.value) == f"Flatten takes arrays [{axes.replace(' ', ', ')}], not {x!r}. Reshape it."
