"""JSON of files: objects alone, each name once, charged before they exist."""

import pytest

from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.json_text import OBJECT, VALUE, RepeatedName, parse_json, unique


def parsed(raw):
    return parse_json(raw, Allowance(0), "the header")


def test_an_object_is_a_dictionary():
    assert parsed(b' {"a": [1, 2.5, null, {"b": "c"}], "b": true} ') == {"a": [1, 2.5, None, {"b": "c"}], "b": True}
    assert parsed('{"é": "ü"}'.encode()) == {"é": "ü"} and parsed(b"{}") == {}


@pytest.mark.parametrize("raw", [b"[]", b"3", b"null", b'"text"'])
def test_what_is_no_object_is_refused(raw):
    with pytest.raises(FormatError, match="^the header is not an object$"):
        parsed(raw)


@pytest.mark.parametrize("raw", [b"", b"{", b'{"a": 1,}', b'{"a": \xff}', b"[" * 100_000, b'{"a": 1} 2'])
def test_what_is_no_json_is_refused(raw):
    with pytest.raises(FormatError, match="^the header is not JSON: "):
        parsed(raw)


@pytest.mark.parametrize("raw", [b'{"x": 1, "a": 2, "a": 2}', b'{"x": {"a": 1, "b": 1, "a": 2}}'])
def test_a_name_that_stands_twice_is_named(raw):
    with pytest.raises(FormatError, match="^the header has the name 'a' twice: remove one$"):
        parsed(raw)
    assert parsed(b'{"a": {"a": 1}}') == {"a": {"a": 1}}


def test_of_several_repeated_names_the_first_is_told():
    assert unique([("a", 1), ("b", 2)]) == {"a": 1, "b": 2}
    with pytest.raises(RepeatedName, match="^b$"):
        unique([("a", 1), ("b", 2), ("c", 3), ("c", 3), ("b", 2)])


@pytest.mark.parametrize(
    ("raw", "cost"),
    [
        (b'{"a": 1}', 2 * 8 + 2 * VALUE + OBJECT),
        (b'{"a": [1, 2]}', 2 * 13 + 4 * VALUE + OBJECT),
        (b'{"a": {}}', 2 * 9 + 3 * VALUE + 2 * OBJECT),
        ('{"ä": 1}'.encode(), 8 * 9 + 2 * VALUE + OBJECT),
    ],
)
def test_values_objects_and_text_are_charged(raw, cost):
    allowance = Allowance(0)
    before = allowance.nbytes
    parse_json(raw, allowance, "the header")
    assert before - allowance.nbytes == cost
    allowance.nbytes = cost - 1
    with pytest.raises(FormatError, match=f"^the header would take {cost:,} bytes"):
        parse_json(raw, allowance, "the header")
