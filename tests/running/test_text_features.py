"""Features of texts: tokens, n-grams with skips and padding, and the patterns whose time is bounded."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.running.text_features import TextFeature, TextInput, TextSplitter, check_pattern, ngrams


def splitter(pattern="", separators=(), least=1, mark=False, pad="#"):
    return TextSplitter(pattern, separators, least, mark, pad)


@pytest.mark.parametrize(
    ("how", "text", "tokens"),
    [
        (splitter("[a-z]+"), "ab C d_e1", ["ab", "d", "e"]),
        (splitter(r"\w+"), "été 1_a", ["t", "1_a"]),
        (splitter(r"\b\w\w+\b"), "a bc d ef!", ["bc", "ef"]),
        (splitter("[a-z]+", least=2), "ab c def", ["ab", "def"]),
        (splitter("."), "a\nb", ["a", "b"]),
        (splitter(separators=("",)), "añb", ["a", "ñ", "b"]),
        (splitter(separators=(" ", "[,;]")), "a b,c;;d ", ["a", "b", "c", "d"]),
        (splitter(separators=("x{2}",), least=2), "abxxcxxde", ["ab", "de"]),
        (splitter("[a-z]", mark=True), "ab", ["\x02", "a", "b", "\x03"]),
    ],
)
def test_tokens_of_a_text(how, text, tokens):
    how.check()
    assert how.tokens(text) == tokens


def test_rows_are_padded_to_one_number_of_tokens():
    assert splitter("[a-z]").rows(["abc", "", "d"]) == [["a", "b", "c"], ["#"] * 3, ["d", "#", "#"]]
    assert splitter("[a-z]").rows([]) == []


def test_ngrams_with_skips():
    pairs = [list(x) for x in ngrams("abcd", 2, 1)]
    assert pairs == [[("a", "b"), ("b", "c"), ("c", "d")], [("a", "c"), ("b", "d")]]
    assert [list(x) for x in ngrams("abc", 1, 5)] == [["a", "b", "c"]]
    assert not any(list(x) for x in ngrams("ab", 3, 10**9))


@pytest.mark.parametrize("skips", [0, 1, 3, 6])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_ngrams_are_tokens_at_equal_distances_of_up_to_one_more_than_the_skips(n, skips):
    for count in range(9):
        tokens = "abcdefgh"[:count]
        steps = range(1, skips + 2) if n > 1 else (1,)
        grams = [tuple(tokens[i + k * step] for k in range(n)) for step in steps for i in range(count - (n - 1) * step)]
        found = [x if n > 1 else (x,) for each in ngrams(tokens, n, skips) for x in each]
        assert found == grams


@pytest.mark.parametrize("order", ["C", "F", "reversed", "strided"])
def test_strings_are_read_in_their_order_whatever_the_order_of_memory(order):
    words = np.array([["AB", "x", "A A"], ["x", "x b", "B"]], object)
    arrays = {
        "C": words, "F": np.asfortranarray(words), "reversed": words[::-1, ::-1].copy()[::-1, ::-1],
        "strided": np.repeat(words, 2, 1)[:, ::2],
    }  # fmt: skip
    numbers = {word: i for i, word in enumerate(["AB", "x", "A A", "x b", "B", "ab", "a a", "b"])}
    features = TextFeature(np.array([[5, 0]]), "LOWER"), TextFeature(np.array([4]), "LOWER", splitter("[a-z]"),
                                                                     {("b",): 1, ("x",): 0}, 0, 2)  # fmt: skip
    for reads_codes, first in ((True, [0, 1, 2, 1, 3, 4]), (False, [])):
        text = TextInput((2, 3), reads_codes, features)
        row = text.encode(arrays[order], lambda x: np.array([numbers[word] for word in x]))
        assert row.tolist() == [*first, 7, 5, 1, 1] and text.size == len(row)
    assert TextInput((2, 3), False, ()).encode(arrays[order], len).tolist() == []


def test_codes_and_counts_of_an_input():
    grams = {("a",): 0, ("a", "b"): 2, ("#",): 1}
    counts = TextFeature(np.array([2, 0]), "LOWER", splitter("[a-z]"), grams, 0, 3)
    upper = TextFeature(np.array([[1]]), "UPPER")
    text = TextInput((3,), True, (counts, upper))
    numbers = {"x": 0, "AB": 1, "A A": 2, "X": 3}
    row = text.encode(np.array(["AB", "x", "A A"], object), lambda words: np.array([numbers[w] for w in words]))
    assert row.tolist() == [1, 0, 2, *[2, 0, 0], *[1, 0, 1], 3] and text.size == len(row)


REFUSED = [
    *("", "a*", "(a)", "a|b", "(?i)a", "a+b+", "a*a*a", "a?b?c?", "[a-z]{1,2000}", "[[:alpha:]]", "\\1", "[a"),
    *("^a", "a$", "x{2,}y+", "a??", "a" * 1001, "\\b", "\\B", "\\B\\b", "[a&&b]", "\\p{L}", "a**", "a{0,3}", "\\b+a"),
]


@pytest.mark.parametrize("pattern", REFUSED)
def test_patterns_without_a_bound_on_their_time_are_refused(pattern):
    with pytest.raises(FormatError, match="is not supported: use characters and classes"):
        check_pattern(pattern)


@pytest.mark.parametrize(
    "pattern", ["[a-zA-Z0-9_]+", ".", r"\w+", "[^ ]+", r"[^]\\a-]+", "ab{2,3}c+", r"\.", r"\b\w\w+\b"]
)
def test_patterns_of_one_repeat_are_taken(pattern):
    check_pattern(pattern)
    splitter(pattern).tokens("ab " * 1000)


LIMITS = {
    "a" * 1000: True, "a" * 1001: False, "a{1000}": True, "a{1001}": False, "a{1,1000}": True, "a{1,1001}": False,
    "a{1000,}": True, "a{1001,}": False, "ab?c?": True, "ab?c?d?": False, "ab?c+": True, "ab{1,2}c{2,}": True,
    "a{2,}b*": False, "a{2}b{3}c{4}d+e?": True, "a{0}b": True, "a{0}": False, "a{1}": True, "a{0,}": False,
    r"\b": False, r"\ba": True, r"\B\w": True,
}  # fmt: skip


@pytest.mark.parametrize("pattern", LIMITS, ids=lambda x: x if len(x) < 20 else str(len(x)))
def test_each_limit_of_a_pattern_is_met_and_not_exceeded(pattern):
    if LIMITS[pattern]:
        check_pattern(pattern)
    else:
        with pytest.raises(FormatError, match="is not supported"):
            check_pattern(pattern)


@pytest.mark.parametrize("separators", [("",), ("a", ""), ("", "a"), ("a", "(b)"), ("(a)", "b")])
def test_each_separator_is_checked_and_an_empty_one_stands_alone(separators):
    how = splitter(separators=separators)
    if separators == ("",):
        how.check()
        return
    with pytest.raises(FormatError, match="is not supported"):
        how.check()


def test_a_case_changes_the_strings_that_are_selected_and_no_others():
    strings = np.array(["aB", "Cd", "e"], object)
    for case, expected in (("NONE", ["Cd", "aB"]), ("LOWER", ["cd", "ab"]), ("UPPER", ["CD", "AB"])):
        feature = TextFeature(np.array([[1], [0]]), case)
        assert feature.texts(strings) == expected and feature.shape == (2, 1)
    assert TextFeature(np.array([[1], [0]]), "NONE", splitter("a"), {}, 0, 5).shape == (2, 1, 5)


def test_each_text_has_as_many_columns_as_are_counted_whatever_the_ngrams():
    grams = {("a",): 4, ("b",): 0, ("a", "b"): 4}
    feature = TextFeature(np.array([1, 0, 2]), "NONE", splitter("[a-z]"), grams, 0, 6)
    counts = feature.counts(np.array(["aab", "b", "ba"], object))
    assert counts.tolist() == [[1, 0, 0, 0, 0, 0], [1, 0, 0, 0, 3, 0], [1, 0, 0, 0, 1, 0]] and feature.shape == (3, 6)
