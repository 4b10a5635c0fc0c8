"""The error that names the sizes and values a file leaves open: its text tells every way out once."""

import pytest

from cgraph.errors import FormatError
from cgraph.formats.unspecified import UnknownError


@pytest.mark.parametrize(
    ("options", "way"),
    [
        ({"shapes": {"x": 3}}, "shapes={'x': 3}"),
        ({"shapes": {"x": (1, 2), "n": 4}}, "shapes={'x': (1, 2), 'n': 4}"),
        ({"constants": ["a", "b"]}, "constants={'a': value}, constants={'b': value}"),
        ({"maximum": ["k", "k"]}, "maximum={'k': n}"),
        ({"maximum": ["k", "m"]}, "maximum={'k': n} or maximum={'m': n}"),
        (
            {"shapes": {"x": 3}, "constants": ["a"], "maximum": ["k"]},
            "maximum={'k': n} or shapes={'x': 3}, constants={'a': value}",
        ),
    ],
)
def test_the_text_has_the_reason_and_the_ways_out(options, way):
    assert str(UnknownError("the size is open", **options)) == f"the size is open; give {way}"


def test_what_is_missing_can_be_read_from_the_error():
    shapes, constants = {"x": 3}, ["a", "b"]
    error = UnknownError("why", shapes, constants, ["k", "m", "k"])
    shapes["y"] = 4
    assert isinstance(error, FormatError)
    assert (error.reason, error.shapes, error.constants, error.maximum) == ("why", {"x": 3}, ("a", "b"), ("k", "m"))
    assert UnknownError("why", constants=["a"]).shapes == {}
