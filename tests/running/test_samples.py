"""Samples of a function's inputs."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import InputError
from cgraph.running.samples import sample_runs

X, Y = cg.Var((2,), name="x"), cg.Var((), "int32", name="y")


def test_a_sample_is_an_array_or_a_tuple_with_one_for_each_input():
    assert [[a.tolist() for a in run] for run in sample_runs([np.ones(2), (np.zeros(2),)], [X], "it")] == [
        [[1, 1]],
        [[0, 0]],
    ]
    ((x, y),) = sample_runs(iter([(np.ones(2), 3)]), [X, Y], "it")
    assert x.dtype == "f4" and y.dtype == "i4" and y == 3


NONE = "quantising needs at least one"


@pytest.mark.parametrize(
    ("samples", "text"),
    [
        *(([], NONE), ((), NONE), (iter([]), NONE), (np.empty((0, 2, 2)), NONE), ({}, NONE)),
        *(([(1, 2, 3)], "3 arrays for 2"), ([(1, 2)], "x ")),
    ],
)
def test_others_are_refused(samples, text):
    with pytest.raises(InputError, match=text):
        sample_runs(samples, [X, Y], "quantising")


def test_a_sample_that_is_a_list_has_an_array_for_each_input_and_the_wrong_one_is_named():
    ((x, y),) = sample_runs([[[1, 2], 3]], [X, Y], "it")
    assert (x.tolist(), y.tolist()) == ([1, 2], 3)
    for sample, name in (((np.ones(2), np.ones(2)), "y"), ((np.ones(3), 3), "x")):
        with pytest.raises(InputError, match=f"^{name} expects"):
            sample_runs([(np.ones(2), 3), sample], [X, Y], "it")
