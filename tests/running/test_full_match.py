"""Whole matches in linear time: Python's regular expressions on drawn patterns and texts, RE2's own rules, refusals."""

import random
import re

import pytest

from cgraph.errors import FormatError
from cgraph.running.full_match import FullMatch, full_match

PIECES = [
    "a", "b", "c", "_", " ", ".", r"\d", r"\w", r"\W", r"\D", r"\s", r"\S", "[a-c]", "[^a]", r"[\d_]", r"[^\w ]",
    r"\b", r"\B", "^", "$", r"\.", "[]a]", "[a-]", "[-a]", r"\A", r"\n",
]  # fmt: skip
REPEATS = ["*", "+", "?", "{2}", "{0,2}", "{1,}", "{0}", "*?", "+?", "??", "{1,2}?"]


def drawn(rng, depth=0):
    """A pattern of characters, classes, conditions, rows, alternatives, groups and repeats."""
    kind = rng.random()
    if depth > 3 or kind < 0.35:
        return rng.choice(PIECES)
    if kind < 0.55:
        return "".join(drawn(rng, depth + 1) for _ in range(rng.randint(0, 3)))
    if kind < 0.7:
        return f"(?:{drawn(rng, depth + 1)}|{drawn(rng, depth + 1)})"
    if kind < 0.8:
        return f"({drawn(rng, depth + 1)})"
    return f"(?:{drawn(rng, depth + 1)}){rng.choice(REPEATS)}"


@pytest.mark.parametrize("seed", range(20))
def test_drawn_patterns_match_what_pythons_do(seed):
    """Python's ``$`` also matches before a last newline; before 3.14, its ``\\B`` does not match an empty text."""
    rng = random.Random(seed)
    for _ in range(100):
        pattern = drawn(rng)
        match, peer = full_match(pattern), re.compile(pattern.replace("$", r"\Z"), re.ASCII)
        for _ in range(12):
            text = "".join(rng.choice("abc_ .1\n") for _ in range(rng.randint(r"\B" in pattern, 6)))
            assert match.matches(text) == bool(peer.fullmatch(text)), (pattern, text)


@pytest.mark.parametrize(
    ("pattern", "texts", "others"),
    [
        (r"\s", "\t\n\f\r ", "\v\xa0"), (r"[[:space:]]", "\t\n\v\f\r ", "\xa0a"), (r"\w", "a_9", "é-"),
        (r"\d", "09", "٣a"),
        (".", "aé日\0", "\n"), ("[^a]", "\nb日", "a"), (r"\x41|\x{e9}|[\x{4e00}-\x{9fff}]", "Aé日", "Be"),
        ("[[:alpha:]]", "aZ", "é1_"), ("[[:^alpha:]_]", "1_é", "aZ"), ("[[:punct:]]", "!/:@[`{~", "a1 "),
        (r"[\d-a]", "5-a", "bz"), (r"[\]\-\\]", "]-\\", "a["), (r"\a|\f|\t|\v|\r", "\a\f\t\v\r", "aftvr"),
        ("a{,2}|[{]|}", "{}", "a"), (r"\B|x", ["", "x"], ["xx"]), (r"\z|\A", [""], ["a"]),
        ("(?P<n>a)(?<m>b)", ["ab"], ["a"]),
        ("(a?){30}a{30}", ["a" * 30, "a" * 60], ["a" * 29, "a" * 61]), ("((a|b)*c){2,}", ["cc", "abcbac"], ["c", "ab"]),
    ],
)  # fmt: skip
def test_what_re2_says(pattern, texts, others):
    match = FullMatch(pattern)
    assert all(match.matches(x) for x in texts) and not any(match.matches(x) for x in others)


def test_patterns_that_take_others_exponential_time():
    """With the states of each character they take as many steps as the text has characters."""
    assert not full_match("(a*)*b").matches("a" * 50_000)
    assert full_match("(a|aa|aaa)*").matches("a" * 50_000)


def test_remembered_moves_are_dropped_when_they_are_many(monkeypatch):
    match = FullMatch("[a-f]*")
    monkeypatch.setattr("cgraph.running.full_match.MOST_REMEMBERED", 3 * match.size)
    assert match.matches("abcdefabcdef") and not match.matches("abcg") and len(match.moves) <= 3


REFUSED = {
    "(a": "an early end", "a)": "a parenthesis that nothing opens", "(?i)a": "flags or a group of another kind",
    "(?=a)": "flags or a group", "[a": "an early end", "[": "an early end", "a\\": "an early end",
    "*": "a repeat of nothing",
    "(|+)": "a repeat of nothing", "a**": "a repeat of a repeat", "a{2}{3}": "a repeat of a repeat",
    "a?+": "a repeat of",
    "a{1001}": "the repeat", "a{3,2}": "the repeat", "[z-a]": "a range that falls", r"[a-\d]": "ends at a class",
    r"\1": "the escape", r"\pL": "the escape", r"\Z": "the escape", r"\é": "the escape", r"[\b]": "the escape",
    r"\x4": "an unknown character", r"\x{110000}": "an unknown character", "[[:foo:]]": "the class",
    "a" * 1001: "1001 characters", "(" * 51 + ")" * 51: "more than 50 groups", "(a{50}){41}": "repeats of 2050 states",
    "(((){1000}){1000}){1000}": "repeats of",
}  # fmt: skip


@pytest.mark.parametrize("pattern", REFUSED, ids=lambda x: f"{x:.12}")
def test_other_patterns_are_refused(pattern):
    with pytest.raises(FormatError, match=f"the pattern .* has .*{REFUSED[pattern]}"):
        full_match(pattern)


@pytest.mark.parametrize(
    "pattern", ["a" * 1000, "(" * 50 + ")" * 50, "(a{50}){40}", "a{1000}", ""], ids=lambda x: f"{x:.12}"
)
def test_what_just_keeps_to_the_limits_is_read(pattern):
    assert full_match(pattern).size <= 2001
