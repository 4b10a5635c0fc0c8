"""Arrays for outputs: as many as outputs, of their shapes and dtypes, writable; outputs that are passed on early."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import InputError
from cgraph.running.output_arrays import EarlyResults, check_output, output_list


def test_a_destination_has_the_shape_and_dtype_of_the_result_and_can_be_written():
    spec = cg.Var((2, 3)).spec
    check_output(np.empty((2, 3), "f4"), spec)
    check_output(np.empty((3, 2), "f4").T, spec)
    frozen = np.empty((2, 3), "f4")
    frozen.flags.writeable = False
    for array, text in [
        (np.empty((3, 2), "f4"), r"float32\[3, 2\] for"),
        (np.empty((2, 3)), r"float64\[2, 3\] for"),
        (frozen, "read-only array"),
        ([[0.0]], r"Pass np.empty\(\[2, 3\], 'float32'\)"),
    ]:
        with pytest.raises(InputError, match=text):
            check_output(array, spec)


def test_there_is_one_array_for_each_output():
    one = np.empty(3)
    assert output_list(one, True, 1, "arrays")[0] is one
    assert output_list((x for x in (one, one)), False, 2, "arrays") == [one, one]
    for count in (0, 1, 3):
        with pytest.raises(InputError, match=f"out has {count} arrays or functions for 2 outputs. Pass one for each"):
            output_list([one] * count, False, 2, "arrays or functions")
    with pytest.raises(InputError, match="out is 7. Pass an array for each of the 2 outputs"):
        output_list(7, False, 2, "arrays")


def test_an_early_output_is_copied_out_of_the_arena_once_and_one_computed_in_place_is_not():
    class Memory:
        def read(self, x):
            return np.float32([1, 2])

    in_place, array, passed = np.zeros(2, "f4"), np.zeros(2, "f4"), []
    direct, out = {"a": in_place}, [None, array]
    early = EarlyResults(["a", "b"], Memory(), direct, out, lambda i, value: passed.append((i, value)))
    early("b")
    early("a")
    assert [i for i, _ in passed] == [1, 0] and passed[0][1] is array and passed[1][1] is in_place
    assert array.tolist() == [1, 2] and in_place.tolist() == [0, 0]
    assert direct["b"] is array and out == [None, None]  # it is not copied again after the run
