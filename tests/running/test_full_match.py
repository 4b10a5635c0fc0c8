"""Whole matches by RE2: its syntax, exponential patterns, refusals, and a package that is not installed."""

import sys

import pytest

from cgraph.errors import FormatError, UnavailableError
from cgraph.running.full_match import LONGEST, full_match


@pytest.mark.parametrize(
    ("pattern", "texts", "others"),
    [
        (r"\d+", ["0", "42"], ["", "4a", "a4", "٣"]), ("a|bc", ["a", "bc"], ["ab", "abc"]), ("", [""], ["a"]),
        (".", ["é", "日", "\0"], ["\n", "ab"]), ("(?i)Ab", ["ab", "AB"], ["b"]), (r"a\b.*", ["a", "a b"], ["ab"]),
        (r"[\x{4e00}-\x{9fff}]+", ["日本"], ["a日"]), ("(?P<n>a)(b)", ["ab"], ["a"]), ("a$", ["a"], ["a\n"]),
    ],
)  # fmt: skip
def test_the_whole_text_must_match(pattern, texts, others):
    matches = full_match(pattern)
    assert all(map(matches, texts)) and not any(map(matches, others))


def test_patterns_that_take_others_exponential_time():
    assert not full_match("(a*)*b")("a" * 50_000)
    assert full_match("(a|aa|aaa)*")("a" * 50_000)


def test_half_of_a_surrogate_pair_matches_nothing():
    assert not full_match(".*")("\ud800")


@pytest.mark.parametrize(
    "pattern", ["(a", "a)", "*", "[a", "[z-a]", r"\1", "(?=a)", "a{1001}", "((a{99}){99}){99}", "\ud800"]
)
def test_what_re2_cannot_read_is_refused(pattern, capfd):
    with pytest.raises(FormatError, match="RE2 cannot read the pattern"):
        full_match(pattern)
    assert capfd.readouterr() == ("", ""), "RE2 writes no log"


def test_a_pattern_has_a_length_at_most():
    assert full_match("a" * LONGEST)("a" * LONGEST)
    with pytest.raises(FormatError, match=f"has {LONGEST + 1} characters; use at most {LONGEST}"):
        full_match("a" * (LONGEST + 1))


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "re2", None)
    full_match.cache_clear()
    with pytest.raises(UnavailableError, match="regular expressions of files need the package google-re2: pip install"):
        full_match("a")
