"""Names of C: what is none becomes one, distinct from others and from words of C and of a header."""

import pytest

from cgraph.errors import FormatError
from cgraph.standalone.names import KEYWORDS, c_name, c_names, check_prefix


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("x", "x"), ("a.b-c/d", "a_b_c_d"), ("_x", "x_x"), ("1x", "x1x"), ("", "x"), ("größe", "gr__e"), ("a\n", "a_"),
        ("int", "int_"), ("Int", "Int"), ("memory", "memory_"), ("x y", "x_y"),
    ],
)  # fmt: skip
def test_other_characters_become_underscores_and_words_of_c_get_one(name, want):
    assert c_name(name) == want


@pytest.mark.parametrize("word", sorted(KEYWORDS))
def test_no_name_is_a_word_of_c_or_of_a_header(word):
    assert c_name(word) not in KEYWORDS and check_prefix(c_name(word)) == c_name(word)
    with pytest.raises(FormatError):
        check_prefix(word)


def test_names_are_distinct_and_none_of_others():
    names = c_names(["a.b", "a_b", "a b", "z"], ["a_b_1", "z_1"])
    assert len({*names, "a_b_1", "z_1"}) == 6 and (names[0], names[3]) == ("a_b", "z")


@pytest.mark.parametrize("name", ["net", "N", "a_1", "Int"])
def test_a_prefix_of_letters_digits_and_underscores_stays(name):
    assert check_prefix(name) == name


@pytest.mark.parametrize("name", ["", "1a", "_a", "a-b", "a b", " a", "a ", "a\n", "\na", "größe", "int"])
def test_a_prefix_that_c_cannot_use_is_named(name):
    with pytest.raises(FormatError) as error:
        check_prefix(name)
    assert str(error.value) == (
        f"{name!r} cannot begin the names of a C header: it needs letters, digits and underscores, and must not be a "
        "keyword. Pass another one as name="
    )
