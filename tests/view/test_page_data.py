"""The page's scripts read the fields that Python writes, all of them and no others."""

import json
import re
from importlib.resources import files

import pytest

from cgraph.view import diagram
from cgraph.view.diagram import diagram_of
from cgraph.view.page import SCRIPTS
from cgraph.view.page_data import (
    TABLES,
    BoxRow,
    ItemRow,
    PageData,
    ReservedRow,
    UpdateRow,
    as_json,
    folded_of,
    number_of,
    page_data,
)
from cgraph.view.planned import memory_of
from tests.view.test_page import example

SCRIPT = "".join((files("cgraph.view") / "web" / name).read_text(encoding="utf-8") for name in SCRIPTS)
# how the scripts name what they read: variables, and the lists in which records of this kind stand
NAMES = {
    PageData: ("data", "data"),
    BoxRow: ("b|read|owner", "boxes"),
    ItemRow: ("item|other|from|to", "items"),
    ReservedRow: ("", "reserved"),
    UpdateRow: ("", "updates"),
}


def fields_read(record) -> set[str]:
    """The properties that the scripts read of records of one kind, without those that they set themselves."""
    variables, name = NAMES[record]
    found = set(re.findall(rf"\b(?:{variables})\.([a-z]\w*)", SCRIPT)) if variables else set()
    found |= set(re.findall(rf"\b{name}\[[^\[\]]*\]\.([a-z]\w*)", SCRIPT))
    for names, source in re.findall(r"(?:const|let) \{ ([\w, ]+) \} (?:=|of) ([\w.\[\]]+)", SCRIPT):
        if re.search(rf"\b{name}(\[\w+\])?$", source) or source in variables.split("|"):
            found |= set(names.split(", "))
    own = set(re.findall(rf"\b(?:{variables})\.(\w+) =[^=]", SCRIPT)) if variables else set()
    return found - own


@pytest.mark.parametrize("record", NAMES, ids=lambda x: x.__name__)
def test_every_field_that_a_script_reads_is_written_and_every_field_that_is_written_is_read(record):
    assert fields_read(record) == set(record._fields)


def test_the_data_of_a_page_is_the_records():
    compiled = example()
    data = page_data(memory_of(compiled), diagram_of(compiled), "summary", 5)
    written = json.loads(json.dumps(as_json(data)))
    assert set(written) == set(PageData._fields)
    for name, record in TABLES.items():
        table = written[name]
        assert table["fields"] == list(record._fields)
        rows = [json.loads(json.dumps([getattr(x, field) for field in record._fields])) for x in getattr(data, name)]
        assert rows and table["rows"] == rows


def test_a_page_has_the_numbers_of_the_pictures_under_the_same_names():
    compiled = example()
    memory = memory_of(compiled)
    data = page_data(memory, diagram_of(compiled), "summary", 5)
    assert (data.summary, data.unshared, data.seconds) == ("summary", 5, ())
    for field in {"nbytes", "lower_bound", "peak", "peak_nbytes", "first", "last"}:
        assert getattr(data, field) == getattr(memory, field)
    assert data.changes == memory.changes.tolist() and data.in_use == memory.in_use.tolist()
    assert data.reserved and len(data.reserved) == len(memory.reserved)
    for row, source in zip(data.reserved, memory.reserved):
        assert all(getattr(row, field) == getattr(source, field) for field in ReservedRow._fields)


def test_the_kinds_of_items_are_those_that_the_scripts_tell_apart():
    kinds = {diagram.OP, diagram.VIEW, diagram.VAR, diagram.CONST}
    assert set(re.findall(r"\.kind === \"(\w+)\"", SCRIPT)) == kinds


def item(kind, *operands, output=False):
    return diagram.DiagramItem("x", kind, "", "", "", 8, -1, -1, -1, operands, output)


def test_constants_and_views_of_constants_alone_are_folded_unless_they_are_outputs():
    items = [
        item(diagram.CONST), item(diagram.VAR), item(diagram.VIEW, 0), item(diagram.VIEW, 0, 1),
        item(diagram.OP, 0), item(diagram.VIEW, 2), item(diagram.CONST, output=True),
        item(diagram.VIEW, 0, output=True), item(diagram.VIEW, 6), item(diagram.VIEW, 0, 6),
    ]  # fmt: skip
    folded = folded_of(diagram.Diagram(tuple(items), ()))
    assert [i for i, is_folded in enumerate(folded) if is_folded] == [0, 2, 5]


def test_switches_are_written_as_digits_and_all_else_as_it_is():
    assert [repr(number_of(x)) for x in (True, False, 2, 2.5, "a", (1,))] == ["1", "0", "2", "2.5", "'a'", "(1,)"]
