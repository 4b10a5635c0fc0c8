"""Results of a call: places, names, slices, a dictionary of them, and a name that no output has."""

import copy
import pickle

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import InputError
from cgraph.running.results import Results, position_of


def test_outputs_come_by_place_by_name_and_as_a_dictionary():
    got = Results([10, 20, 30], ("boxes", "scores", "masks"))
    assert isinstance(got, list) and got == [10, 20, 30]
    assert (got[0], got[-1], got["scores"], got["masks"]) == (10, 30, 20, 30)
    assert got[1:] == [20, 30] and got.keys() == ("boxes", "scores", "masks")
    assert dict(got) == {"boxes": 10, "scores": 20, "masks": 30}


def test_a_name_that_no_output_has_is_refused_with_those_that_there_are():
    with pytest.raises(InputError, match=r"no output 'mask'. Use one of boxes, masks"):
        Results([1, 2], ("boxes", "masks"))["mask"]
    with pytest.raises(InputError, match="Use one of none"):
        position_of((), "mask")
    with pytest.raises(InputError) as info:
        position_of(("a",), "x" * 5000)
    assert len(str(info.value)) < 200


def test_a_call_returns_its_outputs_in_their_order():
    x = cg.Var((2,), name="x")
    got = cg.compile([x + 1, x * 3], [x])(np.array([1.0, 2.0], "f4"))
    assert [y.tolist() for y in got] == [[2, 3], [3, 6]] and len(set(got.keys())) == 2
    for name, y in dict(got).items():
        assert got[position_of(got.keys(), name)] is y


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_of_results_takes_the_names_too(again):
    got = Results([[1], [2]], ("one", "two"))
    other = again(got)
    assert type(other) is Results and other == [[1], [2]] and other.names == ("one", "two")
    other.append([3])
    assert len(got) == 2 and other["two"] == [2]
