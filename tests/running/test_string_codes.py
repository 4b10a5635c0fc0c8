"""Codes of strings in a call: tables, strings that only the call has, numbers without a string."""

import numpy as np
import pytest

from cgraph.errors import InputError
from cgraph.running.string_codes import array_of, array_of_strings, codes_of, strings_for


def test_strings_that_the_file_lacks_get_the_next_numbers():
    more: dict[str, int] = {}
    codes = codes_of(np.array([["b", "new"], ["newer", "new"]], object), {"a": 0, "b": 1}, more, "x")
    assert codes.tolist() == [[1, 2], [3, 2]] and codes.dtype == np.int64 and more == {"new": 2, "newer": 3}
    assert strings_for(codes, array_of(["a", "b", *more])).tolist() == [["b", "new"], ["newer", "new"]]
    assert strings_for(np.int64(1), array_of(["a", "b"])).shape == () and strings_for(
        np.zeros((0, 2), int), array_of([])
    ).shape == (0, 2)


@pytest.mark.parametrize("code", [-1, 2])
def test_a_number_without_a_string_is_refused(code):
    with pytest.raises(InputError, match="a number outside the 2 strings of the file and the call"):
        strings_for(np.array([0, code]), array_of(["a", "b"]))


def test_only_strings_of_the_shape_are_taken():
    assert array_of_strings(["a", "b"], (2,), "x").dtype == object
    with pytest.raises(InputError, match=r"x has shape \[2\], not \[3\]"):
        array_of_strings(["a", "b"], (3,), "x")
    with pytest.raises(InputError, match="x holds b'a' of bytes, not a string"):
        array_of_strings([b"a"], (1,), "x")


def test_each_element_that_has_no_code_must_be_a_string():
    """Also one without a hash."""
    for other in (3, None, ["a"], b"a"):
        array = np.empty(2, object)
        array[:] = ["a", other]
        with pytest.raises(InputError, match="x holds .*, not a string: convert it with str"):
            codes_of(array, {"a": 0}, {}, "x")
    assert codes_of(np.array(["b", "a"], object), {"a": 0}, {}, "x").tolist() == [1, 0]
    assert codes_of(np.empty((0, 3), object), {"a": 0}, {}, "x").shape == (0, 3)
