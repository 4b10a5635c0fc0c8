"""Rows of JSON files: the same values as from the whole text, wherever the pieces that are read end."""

import json

import pytest

from cgraph.errors import FormatError
from cgraph.formats import json_rows as module
from cgraph.formats.json_rows import json_rows

ROWS = [
    {"id": 1, "name": "a\u00e9\U0001f600", "list": [1, 2.5, -3e5, True, None], "text": 'quo"te, ] } \\ [ {'},
    {},
    [],
    [[], [[1]]],
    12345,
    "",
    0.25,
    {"nested": {"a": [{"b": 1}]}},
]
SKIPPED = {"info": {"rows": [1, 2]}, "version": 1.25, "text": "]}", "nothing": None}


def lists_of(path):
    lists = {}
    for row in json_rows(path):
        if isinstance(row, str):
            lists[row] = []
        else:
            assert json.loads(row.text) == row.value
            lists[row.name].append(row.value)
    return lists


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 64, 1 << 18])
@pytest.mark.parametrize("options", [{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}])
def test_lists_are_those_of_the_whole_text(tmp_path, monkeypatch, piece, options):
    monkeypatch.setattr(module, "PIECE", piece)
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"first": ROWS, **SKIPPED, "empty": [], "last": ROWS[::-1]}, **options), "utf-8")
    assert lists_of(path) == {"first": ROWS, "empty": [], "last": ROWS[::-1]}


def test_a_mark_of_the_encoding_and_spaces_around_the_object_are_skipped(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"\xef\xbb\xbf \n\t{} \r\n")
    assert lists_of(path) == {}
    path.write_bytes(b' { "a" : [ 1 , 2 ] , "b" : 3 } ')
    assert lists_of(path) == {"a": [1, 2]}


@pytest.mark.parametrize("piece", [1, 1 << 18])
def test_every_cut_and_every_letter_left_out_is_refused_as_by_the_whole_text(tmp_path, monkeypatch, piece):
    monkeypatch.setattr(module, "PIECE", piece)
    path, text = tmp_path / "a.json", '{"a": [1, {"b": "c"}, [2]], "d": {"e": 3}, "f": []}'
    changed = [text[:i] for i in range(len(text))] + [text[:i] + text[i + 1 :] for i in range(len(text))]
    for each in [*changed, text + "x", text + "]", text + "{}", "[1]", "1", ""]:
        path.write_text(each)
        try:
            expected = {k: v for k, v in json.loads(each).items() if isinstance(v, list)}
        except (ValueError, AttributeError):
            with pytest.raises(ValueError):
                lists_of(path)
        else:
            assert lists_of(path) == expected


def test_an_entry_that_is_there_twice_is_refused(tmp_path):
    path = tmp_path / "a.json"
    for text in ('{"a": [1], "a": [2]}', '{"a": 1, "a": [2]}'):
        path.write_text(text)
        with pytest.raises(FormatError, match="has an entry 'a', twice"):
            lists_of(path)


@pytest.mark.parametrize("text", ['{"a": [1, "%s"]}', '{"a": "%s"}', '{"a": [[%s]]}'])
def test_values_have_a_largest_size(tmp_path, monkeypatch, text):
    monkeypatch.setattr(module, "MOST_LETTERS", 100)
    monkeypatch.setattr(module, "PIECE", 10)
    path = tmp_path / "a.json"
    path.write_text(text % ("1" * 90))
    lists_of(path)
    path.write_text(text % ("1" * 120))
    with pytest.raises(FormatError, match="has more than 100 B. Split it"):
        lists_of(path)


def test_one_row_is_in_memory_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PIECE", 100)
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"a": list(range(10_000))}))
    opened = []

    class Watched(module.Letters):
        def __init__(self, file):
            super().__init__(file)
            opened.append(self)

    monkeypatch.setattr(module, "Letters", Watched)
    assert max(len(opened[0].text) for _ in json_rows(path)) < 200


@pytest.mark.parametrize("piece", [1, 7, 59, 60, 61, 99, 100, 101, 150, 300])
def test_values_before_a_row_do_not_count_to_its_size(tmp_path, monkeypatch, piece):
    """Rows of 60 letters, of which a piece may hold several and a part of the next one."""
    monkeypatch.setattr(module, "MOST_LETTERS", 100)
    monkeypatch.setattr(module, "PIECE", piece)
    rows = ["x" * (56 + i % 3) for i in range(9)]
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"skipped": rows[0], "a": rows, "b": rows[:2]}))
    assert lists_of(path) == {"a": rows, "b": rows[:2]}
