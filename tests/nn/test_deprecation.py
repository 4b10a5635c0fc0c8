import inspect

import numpy as np
import pytest

import cgraph as cg
import nn
from nn.deprecation import renamed_keyword, renamed_method
from nn.optim.clipping import Clipping


@renamed_keyword("old", "new")
def double(new: int = 1) -> int:
    return 2 * new


def test_the_old_keyword_is_passed_under_its_new_name_with_a_warning():
    with pytest.warns(DeprecationWarning, match="double: old= is called new= now. Use new="):
        assert double(old=3) == 6
    assert double(4) == double(new=4) == 8


def call_all_that_warn():
    x, y = cg.Var((2, 3)), cg.Var((2, 3))
    double(old=3)
    nn.losses.quadratic(x, wanted=y)
    with pytest.raises(cg.InputError):
        nn.quantise(nn.models.mlp(), np.zeros((1, 3), np.float32), wanted=[0])


def test_a_warning_names_the_line_that_calls():
    with pytest.warns(DeprecationWarning) as warned:
        call_all_that_warn()
    assert len(warned) == 3 and {w.filename for w in warned} == {__file__}


def test_both_names_in_one_call_are_refused():
    with pytest.raises(TypeError, match="not both"):
        double(old=1, new=2)


@pytest.mark.parametrize(
    "loss", [x for x in vars(nn.losses).values() if inspect.isfunction(x) and x.__name__ in nn.losses.__all__]
)
def test_every_loss_takes_its_old_keyword(loss):
    x, y = cg.Var((2, 3)), cg.Var((2, 3))
    with pytest.warns(DeprecationWarning, match="targets"):
        old = loss(x, wanted=y)
    arrays = [np.linspace(0.1, 0.9, 6, dtype="float32").reshape(2, 3)] * 2
    new = loss(x, targets=y)
    assert cg.compile(old, [x, y])(*arrays) == cg.compile(new, [x, y])(*arrays)


def test_quantise_takes_its_old_keyword():
    with pytest.warns(DeprecationWarning, match="labels"), pytest.raises(cg.InputError):
        nn.quantise(nn.models.mlp(), np.zeros((1, 3), np.float32), wanted=[0])


def test_old_names_of_methods_and_functions_do_the_same_with_a_warning():
    gradients = [cg.Const(np.array([3.0, 4.0], "float32"))]
    with pytest.warns(DeprecationWarning, match="ClipL2.clipped is called clip now"):
        old = nn.optim.ClipL2(1.0).clipped(gradients)
    assert np.array_equal(old[0].eval(), nn.optim.ClipL2(1.0).clip(gradients)[0].eval())
    with pytest.warns(DeprecationWarning, match="random_shift"):
        assert callable(nn.shifted(2))


def test_an_old_method_passes_all_arguments_on():
    class Scale:
        def times(self, x, *, by=1):
            return x * by

        multiplied = renamed_method("multiplied", "times")

    with pytest.warns(DeprecationWarning, match="Scale.multiplied is called times now. Use times"):
        assert Scale().multiplied(3, by=4) == Scale().times(3, by=4) == 12


def test_a_clipping_that_defines_the_old_name_still_clips():
    class Halve(Clipping):
        def clipped(self, gradients):
            return [g * 0.5 for g in gradients]

    (half,) = Halve().clip([cg.Const(np.array([3.0], "float32"))])
    assert half.eval() == [1.5]
