"""The parser of Darknet's descriptions: options as numbers and lists, sections with their lines, and its limits."""

from io import StringIO

import pytest

from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.darknet.config import (
    LARGEST_FILE,
    LONGEST_LINE,
    MOST_NUMBERS,
    MOST_SECTIONS,
    Section,
    parse,
    read_config,
)


def section(**options):
    return Section("local", 4, 17, options)


def parsed(text):
    return parse(StringIO(text), Allowance(0))


def test_a_whole_number_is_cut_towards_zero_and_its_default_is_for_absence_only():
    s = section(stride="3.9", pad="-3.9", empty="")
    assert (s.integer("stride"), s.integer("pad"), s.integer("size", 7), s.integer("size", 0)) == (3, -3, 7, 0)
    with pytest.raises(FormatError, match=r"\[local\] in line 17 \(layer 4\): the option size is missing"):
        s.integer("size")
    with pytest.raises(FormatError, match="empty= is not an integer"):
        s.integer("empty", 5)


@pytest.mark.parametrize("text", ["nan", "inf", "-1e400", "0x3", "3,4"])
def test_what_is_no_whole_number_is_named(text):
    with pytest.raises(FormatError, match=f"stride={text} is not an integer"):
        section(stride=text).integer("stride")


def test_a_size_is_at_least_one_and_a_number_has_a_default():
    s = section(one="1", zero="0", half="0.5", word="half")
    assert s.size("one") == 1 and s.size("absent", 3) == 3
    for name in ("zero", "half"):
        with pytest.raises(FormatError, match=f"{name}=0 must be at least 1"):
            s.size(name)
    assert s.number("half", 2.0) == 0.5 and s.number("absent", 2.0) == 2.0
    with pytest.raises(FormatError, match="word=half is not a number"):
        s.number("word", 2.0)


def test_lists_skip_empty_entries_and_hold_one_kind():
    s = section(mask="3, -1,, ,2,", anchors="1.5, 2", none="")
    assert s.ints("mask") == [3, -1, 2] and s.numbers("anchors") == [1.5, 2.0] and s.ints("none") == []
    with pytest.raises(FormatError, match="anchors=1.5, 2 must be integers"):
        s.ints("anchors")
    with pytest.raises(FormatError, match="absent= must be numbers"):
        s.numbers("absent")


def test_a_list_has_a_longest_length():
    assert len(section(mask="1," * MOST_NUMBERS).ints("mask")) == MOST_NUMBERS
    with pytest.raises(FormatError, match="mask lists more than 10,000 numbers"):
        section(mask="1," * (MOST_NUMBERS + 1)).ints("mask")


def test_sections_carry_their_number_and_the_line_on_which_they_begin():
    net, crop, last = parsed("\n# first\n [ network ] \n width = 3 = x # y\n\n[crop]\n;a=1\nb=2\nb=3\n[dropout]")
    assert (net.kind, net.index, net.line, net.options) == ("network", -1, 3, {"width": "3 = x"})
    assert (crop.kind, crop.index, crop.line, crop.options) == ("crop", 0, 6, {"b": "3"})
    assert (last.kind, last.index, last.line, last.options) == ("dropout", 1, 10, {})


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", r"the first section must be \[net\], it is absent"),
        ("[crop]\n[net]\n", r"must be \[net\], it is \[crop\]"),
        ("[net]\n[crop\n", r"line 2: '\[crop' is not a \[section\] header"),
        ("[net]\n\nwidth\n", "line 3: 'width' is not an option of a section"),
        ("width=3\n[net]\n", "line 1: 'width=3' is not an option"),
    ],
)
def test_a_line_that_means_nothing_is_named(text, match):
    with pytest.raises(FormatError, match=match):
        parsed(text)


def test_sections_and_lines_are_limited():
    assert len(parsed("[net]\n" * MOST_SECTIONS)) == MOST_SECTIONS
    with pytest.raises(FormatError, match=f"line {MOST_SECTIONS + 1}: "):
        parsed("[net]\n" * (MOST_SECTIONS + 1))
    assert len(parsed("[net]\na=" + "1" * (LONGEST_LINE - 4) + "\n")[0].text("a")) == LONGEST_LINE - 4
    with pytest.raises(FormatError, match="line 2 has over 1,048,576 characters"):
        parsed("[net]\na=" + "1" * LONGEST_LINE + "\n")


def test_sections_and_options_are_charged():
    allowance = Allowance(0)
    before = allowance.nbytes
    parse(StringIO("[net]\n"), allowance)
    of_section = before - allowance.nbytes
    parse(StringIO("[net]\nwidth=3\n"), allowance)
    of_option = before - allowance.nbytes - 2 * of_section
    assert of_section > 600 and of_option > 240
    allowance.nbytes = of_section + of_option - 1
    with pytest.raises(FormatError, match="its options would take"):
        parse(StringIO("[net]\nwidth=3\n"), allowance)


def test_errors_of_a_file_name_it_and_its_size_widens_the_allowance(tmp_path):
    path, allowance = tmp_path / "net.cfg", Allowance(0)
    path.write_text("[net]\nwidth=3\n")
    read_config(path, allowance)
    assert allowance.file_nbytes == path.stat().st_size
    path.write_text("[net]\nwidth\n")
    with pytest.raises(FormatError, match="net.cfg: line 2: 'width'"):
        read_config(path, allowance)
    path.write_bytes(bytes(LARGEST_FILE))
    with pytest.raises(FormatError, match="net.cfg: line 1 has over"):
        read_config(path, allowance)
    with path.open("wb") as file:
        file.truncate(LARGEST_FILE + 1)
    with pytest.raises(FormatError, match="net.cfg: it has .* MiB; a network description has at most 16 MiB"):
        read_config(path, allowance)


@pytest.mark.parametrize("number", [-(2**31), 2**31 - 1])
def test_whole_numbers_have_32_bits(number):
    beyond = number + (1 if number > 0 else -1)
    section = Section("crop", 0, 1, {"inside": str(number), "outside": str(beyond)})
    assert section.integer("inside") == number
    with pytest.raises(FormatError, match="out of range"):
        section.integer("outside")


def test_what_stands_behind_a_value_is_a_comment(tmp_path):
    path = tmp_path / "x.cfg"
    path.write_text("[net]\nwidth=3 # columns\nheight=2#rows\nchannels=4\n[crop]# none\n".replace("# none", ""))
    options, _ = read_config(path, Allowance(100))
    assert options.options == {"width": "3", "height": "2", "channels": "4"}
