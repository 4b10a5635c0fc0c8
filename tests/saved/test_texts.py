"""Inputs of strings in a manifest: what is written is read again, and what does not fit is refused."""

import json

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.running.text_features import TextFeature, TextInput, TextSplitter
from cgraph.saved.texts import text_entry, texts_of

SPLITTER = TextSplitter("[a-z]+", (), 2, True, "#")
COUNTED = TextFeature(np.array([[2], [0]]), "LOWER", SPLITTER, {("fox",): 0, ("a", "dog"): 2}, 1, 3)
CODES = TextFeature(np.array([1]), "UPPER")
TEXT = TextInput((3,), True, (COUNTED, CODES))
STRINGS = np.array(["A dog", "Fox", "fox fox"], object)


def entry():
    """The entry as a file holds it."""
    return json.loads(json.dumps(text_entry(TEXT)))


def read(part, size=TEXT.size, dtype="int64"):
    row = cg.Var((size,), dtype, "x")
    return texts_of([part], [row])[row]


def test_a_text_that_is_read_again_has_the_same_numbers():
    codes = lambda strings: np.array([len(s) for s in strings], np.int64)  # noqa: E731
    again = read(entry())
    np.testing.assert_array_equal(again.encode(STRINGS, codes), TEXT.encode(STRINGS, codes))
    assert again.shape == (3,) and again.features[0].splitter == SPLITTER and again.features[1].splitter is None


@pytest.mark.parametrize(
    "splitter",
    [
        TextSplitter("[a-z]+", (), 0, False, ""),
        TextSplitter("", (",", " +"), 3, True, "_"),
        TextSplitter("", ("",), 1, False, "#"),
        None,
    ],
    ids=repr,
)
def test_every_field_of_a_feature_is_read_again(splitter):
    grams = {} if splitter is None else {("b",): 1, ("a", "b"): 0}
    feature = TextFeature(np.array([[2, 0, 1]]), "UPPER" if splitter else "NONE", splitter, grams, len(grams), 2)
    text = TextInput((3, 1), splitter is None, (CODES, feature))
    again = read(json.loads(json.dumps(text_entry(text))), text.size)
    assert (again.shape, again.reads_codes, len(again.features)) == (text.shape, text.reads_codes, 2)
    for got, want in zip(again.features, text.features):
        np.testing.assert_array_equal(got.index, want.index, strict=True)
        for name in ("case", "splitter", "grams", "skips", "columns", "pattern"):
            assert getattr(got, name) == getattr(want, name), name


def test_a_pattern_is_read_again():
    feature = TextFeature(np.array([[2, 0, 1]]), "LOWER", pattern=r"(a|fox) ?\w*")
    text = TextInput((3,), False, (feature,))
    again = read(json.loads(json.dumps(text_entry(text))), text.size)
    assert again.features[0].pattern == feature.pattern and again.features[0].splitter is None
    assert again.encode(STRINGS, len).tolist() == [1, 1, 1]


@pytest.mark.parametrize("pattern", [3, ["a"], True, "(a", "a{1001}"])
def test_a_pattern_that_is_not_supported_is_refused(pattern):
    part = entry()
    part["features"][1]["pattern"] = pattern
    with pytest.raises(FormatError):
        read(part)


def test_a_feature_is_not_counts_and_matches():
    part = entry()
    part["features"][0]["pattern"] = "a"
    with pytest.raises(FormatError, match="an input of texts"):
        read(part)


@pytest.mark.parametrize("shape", [(6,), (2, 3), (3, 1, 2), (6, 1)])
def test_strings_of_any_axis_are_read_and_none_behind_the_last(shape):
    text = TextInput(shape, True, (TextFeature(np.array([5, 0]), "NONE"),))
    part = json.loads(json.dumps(text_entry(text)))
    again = read(part, text.size)
    assert again.shape == shape and again.features[0].index.tolist() == [5, 0]
    part["features"][0]["index"] = [[2], [6, 0]]
    with pytest.raises(FormatError, match="of a saved function is malformed"):
        read(part, text.size)


def test_inputs_without_texts_have_no_entry():
    assert text_entry(None) is None and texts_of([None, None], [1, 2]) == {}


def changed(*path_and_value):
    """The entry with one value replaced."""
    *path, last, value = path_and_value
    part = whole = entry()
    for step in path:
        part = part[step]
    part[last] = value
    return whole


DAMAGED = {
    "no shape": changed("shape", None),
    "a negative length": changed("shape", [-3]),
    "codes that are no bool": changed("codes", 1),
    "a feature that is a list": changed("features", 0, []),
    "an unknown case": changed("features", 0, "case", "TITLE"),
    "an index beyond the strings": changed("features", 0, "index", [[2, 1], [2, 3]]),
    "an index of another size": changed("features", 0, "index", [[2, 1], [2]]),
    "a negative number of columns": changed("features", 0, "columns", -1),
    "negative skips": changed("features", 0, "skips", -1),
    "a gram without words": changed("features", 0, "grams", [[[], 0]]),
    "a gram of numbers": changed("features", 0, "grams", [[[1], 0]]),
    "a gram beyond the columns": changed("features", 0, "grams", [[["fox"], 3]]),
    "a splitter of four parts": changed("features", 0, "splitter", ["[a-z]+", [], 2, True]),
    "a pattern and separators": changed("features", 0, "splitter", ["[a-z]+", [","], 2, True, "#"]),
    "neither a pattern nor separators": changed("features", 0, "splitter", ["", [], 2, True, "#"]),
    "a text of separators": changed("features", 0, "splitter", ["", ",;", 2, True, "#"]),
    "a separator that is a number": changed("features", 0, "splitter", ["", [",", 1], 2, True, "#"]),
    "a negative least length": changed("features", 0, "splitter", ["[a-z]+", [], -1, True, "#"]),
    "a token behind the last that is a number": changed("features", 0, "splitter", ["[a-z]+", [], 2, True, 0]),
    "a negative index": changed("features", 0, "index", [[2, 1], [2, -1]]),
    "a column before the first": changed("features", 0, "grams", [[["fox"], -1]]),
    "a pattern that is a number": changed("features", 0, "splitter", [1, [], 2, True, "#"]),
    "a mark that is a number": changed("features", 0, "splitter", ["[a-z]+", [], 2, 1, "#"]),
}


@pytest.mark.parametrize("part", DAMAGED.values(), ids=DAMAGED)
def test_damaged_entries_are_refused(part):
    with pytest.raises(FormatError, match="of a saved function is malformed"):
        read(part)


def test_patterns_of_exponential_time_are_refused():
    with pytest.raises(FormatError, match="is not supported"):
        read(changed("features", 0, "splitter", ["(a+)+", [], 2, True, "#"]))


@pytest.mark.parametrize(("size", "dtype"), [(TEXT.size + 1, "int64"), (TEXT.size, "int32")])
def test_texts_of_another_size_or_dtype_than_the_input_are_refused(size, dtype):
    with pytest.raises(FormatError, match="an input of texts"):
        read(entry(), size, dtype)


def test_a_list_for_other_inputs_is_refused():
    for part in (None, [], [None]):
        with pytest.raises(FormatError, match="an input of texts"):
            texts_of(part, [1, 2])


def test_each_input_of_texts_has_its_own_entry():
    """One of no texts among them."""
    other = TextInput((2, 2), False, (TextFeature(np.array([3, 0, 1]), "NONE"),))
    rows = [cg.Var((n,), "int64", name) for name, n in (("a", TEXT.size), ("b", 4), ("c", other.size))]
    parts = [json.loads(json.dumps(text_entry(x))) for x in (TEXT, None, other)]
    found = texts_of(parts, rows)
    assert list(found) == [rows[0], rows[2]]
    assert found[rows[0]].shape == (3,) and found[rows[2]].shape == (2, 2)
    assert found[rows[2]].features[0].index.tolist() == [3, 0, 1]
    for i, wrong in ((0, cg.Var((TEXT.size,), "int32")), (2, cg.Var((other.size + 1,), "int64"))):
        with pytest.raises(FormatError, match="an input of texts"):
            texts_of(parts, [wrong if i == k else x for k, x in enumerate(rows)])
    for wrong in (parts[:2], [*parts, None], tuple(parts), {}):
        with pytest.raises(FormatError, match="an input of texts"):
            texts_of(wrong, rows)


@pytest.mark.parametrize(("path", "value"), [
    (("features", 0, "index"), [2, [2, 0]]), (("features", 0, "index"), ["21", [2, 0]]),
    (("features", 0, "index"), [[2, 1], "20"]), (("features", 0, "index"), [[2, 1], {"0": 1}]),
    (("features", 0, "index"), [[2, 1], [2, True]]), (("features", 0, "index"), [[2, 1], [2, 0, 1]]),
    (("features", 0, "index"), [[2, 1], [2, 4]]), (("features", 0, "index"), [[2, True], [2, 0]]),
    (("features", 0, "grams"), [["fox", 0]]), (("features", 0, "grams"), [[{"fox": 1}, 0]]),
    (("features", 0, "grams"), [[["fox"], 4]]), (("features", 0, "grams"), [[["fox"], True]]),
    (("features", 0, "grams"), [[["fox"], 0], [["a"], 3]]), (("features", 0, "grams"), [[["fox", 1], 0]]),
    (("shape",), [3, -1]), (("shape",), [3.0]), (("features", 0, "columns"), 2), (("features", 0, "skips"), True),
    (("features", 1, "index"), [[1], [3]]), (("features", 1, "case"), None),
], ids=str)  # fmt: skip
def test_each_part_of_an_entry_has_its_type_and_range(path, value):
    with pytest.raises(FormatError, match="of a saved function is malformed"):
        read(changed(*path, value))


@pytest.mark.parametrize(("path", "value"), [
    (("features", 0, "grams"), [[["fox"], 2], [["a", "dog"], 0]]), (("features", 0, "index"), [[2], [0, 2]]),
    (("features", 0, "index"), [[1, 2], [2, 2]]), (("features", 0, "skips"), 0), (("features", 1, "index"), [[], [2]]),
], ids=str)  # fmt: skip
def test_an_entry_may_reach_its_ends(path, value):
    text = read(changed(*path, value))
    if path[-1] == "grams":
        assert text.features[0].grams == {("fox",): 2, ("a", "dog"): 0}
    elif path[-1] == "index":
        shape, places = value
        index = text.features[path[1]].index
        assert index.shape == tuple(shape) and index.ravel().tolist() == places
    else:
        assert text.features[0].skips == 0
