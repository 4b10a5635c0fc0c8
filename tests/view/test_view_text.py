"""Names and colours in pictures: visible, escaped, short enough, and the same everywhere."""

import re

import pytest

from cgraph.view.text import COLOURS, LONGEST, colour_of, markup, plain


@pytest.mark.parametrize("length", [1, LONGEST - 1, LONGEST])
def test_a_name_of_at_most_the_longest_stays(length):
    assert plain("x" * length) == "x" * length


@pytest.mark.parametrize("length", [LONGEST + 1, 5 * LONGEST])
def test_a_longer_name_ends_in_an_ellipsis(length):
    assert LONGEST == 200 and plain("x" * length) == "x" * 199 + "…"


def test_what_cannot_be_seen_becomes_a_question_mark():
    assert plain("a\nb\tc\x1b[31m\u202ed\ud800") == "a?b?c?[31m?d?"
    assert plain("Größe × 2 ≤ 日本") == "Größe × 2 ≤ 日本"


def test_markup_is_escaped_line_by_line():
    assert markup("<a href=\"b\">&'c'") == "&lt;a href=&quot;b&quot;&gt;&amp;&#x27;c&#x27;"
    assert markup("a\n<b>\n") == "a\n&lt;b&gt;\n"
    assert markup("x" * 300 + "\ny") == "x" * 199 + "…\ny"


def test_colours_are_used_in_turn():
    assert len(set(COLOURS)) == len(COLOURS) == 18 and all(re.fullmatch("#[0-9a-f]{6}", x) for x in COLOURS)
    assert [colour_of(i) for i in (0, 1, 17, 18, 37)] == [COLOURS[i] for i in (0, 1, 17, 0, 1)]
