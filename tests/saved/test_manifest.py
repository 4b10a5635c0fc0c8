"""What a manifest may say: each check from both sides."""

import json

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.kernels.isa.architectures import host_architecture
from cgraph.kernels.kernel import Pointer, View
from cgraph.record import replace
from cgraph.saved import manifest
from cgraph.saved.layout import FORMAT, VERSION, with_sum
from cgraph.saved.manifest import (
    FileArrays,
    check_inside,
    entries_of,
    get,
    integers,
    is_size,
    items,
    manifest_of,
    misfit,
    numbers,
    spec_of,
    target_of,
    unique,
    variable_of,
)
from cgraph.system.machine import system_name
from cgraph.version import __version__

ENTRIES = {
    "variables": [["x", "f4", [2], "a.py:1", -1], ["w", "i8", [], "a.py:2", 64], ["v", "f4", [0, 3], "a.py:3", 0]],
    "inputs": [0], "cells": [2, 1], "updated": [1], "outputs": [["f4", [2]], ["i8", []]], "names": ["y", "z"],
    "single": False, "files": {"state.bin": [72, 5]},
}  # fmt: skip


def test_a_manifest_names_each_var_in_its_roles():
    read = manifest_of(json.loads(json.dumps(ENTRIES)))
    x, w, v = read.variables
    assert read.inputs == (x,) and read.cells == (v, w) and read.updated == (w,)
    assert read.starts == (-1, 64, 0) and (w.name, w.where, str(w.spec)) == ("w", "a.py:2", "int64[]")
    assert [str(y.spec) for y in read.outputs] == ["float32[2]", "int64[]"] and read.names == ("y", "z")
    assert x.cell is not w.cell and w.assign(3).value == 3 and read.files == {"state.bin": [72, 5]}


@pytest.mark.parametrize(("name", "value"), [
    ("inputs", [3]), ("inputs", [-1]), ("cells", [1, 1]), ("updated", [True]), ("names", ["y"]), ("names", ["y", 2]),
    ("single", 0), ("files", {"a": [1]}), ("files", {"a": [1, -1]}), ("outputs", [["f4", [-1]], ["f4", []]]),
    ("outputs", [["f4"], ["f4", []]]), ("variables", [["x", "f4", [], "", -2]]), ("variables", [["x", "f4", [], ""]]),
    ("variables", [[1, "f4", [], "", 0]]),
])  # fmt: skip
def test_any_other_entry_is_malformed(name, value):
    for kind in ({}, {"trims": None}, {"graph": None, "trims": None, "loops": []}):  # as older and newer versions write
        assert manifest_of(ENTRIES | kind).names == ("y", "z")
        with pytest.raises(FormatError, match="malformed"):
            manifest_of(ENTRIES | kind | {name: value})


@pytest.mark.parametrize("names", [[], ["y"], ["y", "z"], ["y", "z", "more"]])
def test_names_are_those_of_all_outputs_unless_they_are_trimmed(names):
    for trims in ({}, {"cases": []}):  # then the program has outputs that the function has not
        assert len(manifest_of(ENTRIES | {"names": names, "trims": trims}).names) == len(names)
    for plain in ({}, {"trims": None}):
        if len(names) in (0, 2):
            manifest_of(ENTRIES | {"names": names} | plain)
            continue
        with pytest.raises(FormatError, match="malformed"):
            manifest_of(ENTRIES | {"names": names} | plain)


def test_names_may_be_left_out():
    assert manifest_of(ENTRIES | {"names": []}).names == ()


def test_only_whole_manifests_of_this_format_are_read():
    def read(text: str) -> dict:
        return entries_of(np.frombuffer(with_sum(text), np.uint8))

    assert read(json.dumps({"format": FORMAT}))["format"] == FORMAT
    for text, match in (
        ('{"format": "other"}', "but 'other'"),
        ('{"a": 1, "a": 2}', "two entries"),
        ("{,}", "not JSON"),
    ):
        with pytest.raises(FormatError, match=match):
            read(text)
    raw = bytearray(with_sum(json.dumps({"format": FORMAT})))
    raw[3] ^= 1
    with pytest.raises(FormatError, match=f"the manifest of {len(raw)} bytes has another checksum"):
        entries_of(np.frombuffer(bytes(raw), np.uint8))
    assert unique([("a", 1), ("b", 2)]) == {"a": 1, "b": 2}
    for first, second in ((1, 2), (1, 1), (1, True), ([], []), (None, None)):
        with pytest.raises(FormatError, match="two entries"):
            unique([("a", first), ("b", 0), ("a", second)])


@pytest.mark.parametrize("strides", [(-24, -8), (-24, 8), (24, -8), (24, 8)])
def test_an_output_may_run_backwards_along_any_axes(strides):
    least = sum((n - 1) * -stride for n, stride in zip((4, 3), strides) if stride < 0)
    whole = 4 * 3 * 8
    check_inside(View(Pointer("arena", least), (4, 3), strides, "f8"), whole)
    for offset in (least - 8, least + 8):
        with pytest.raises(FormatError, match="outside of its memory"):
            check_inside(View(Pointer("arena", offset), (4, 3), strides, "f8"), whole)


def test_what_does_not_fit_is_named_first_the_version_then_the_system_then_the_processor():
    target = host_architecture().targets[0].name
    fits = {"version": VERSION, "cgraph": __version__, "system": system_name(), "targets": {target: {}}}
    features = host_architecture().needs[target]
    assert misfit(fits, frozenset(features)) is None
    assert misfit(fits | {"version": 0, "system": ""}, frozenset()) == (
        f"it was saved by cgraph {__version__}, format 0; this is cgraph {__version__}, format {VERSION}"
    )
    assert "saved by cgraph 0.1, format" in misfit(fits | {"cgraph": "0.1"}, frozenset())
    assert (
        misfit(fits | {"system": "plan9 mips"}, frozenset()) == f"it was saved for plan9 mips; this is {system_name()}"
    )
    assert "holds code for other, which" in misfit(fits | {"targets": {"other": {}}}, frozenset())
    assert "holds code for nothing" in misfit(fits | {"targets": {}}, frozenset())
    others = {"targets": {"one": {}, "other": {}}}
    assert misfit(fits | others, features) == "it holds code for one, other, which this processor does not run"


def test_the_widest_target_whose_features_are_all_there_is_taken():
    own = host_architecture()
    names = [x.name for x in own.targets if x.name in own.needs]
    every = dict.fromkeys(names, {})
    assert target_of(every, frozenset().union(*own.needs.values())) == names[-1]
    wide = [name for name in names if own.needs[name]]
    for name in wide:
        missing = frozenset().union(*own.needs.values()) - set(list(own.needs[name])[:1])
        assert target_of({name: {}}, missing) is None
    assert target_of({}, frozenset()) is None


@pytest.mark.parametrize(("function", "good", "bad"), [
    (lambda x: get({"a": x}, "a", int), [0, -1], [True, "0", None, 1.0]),
    (lambda x: items(x, 2), [[1, 2]], [[1], [1, 2, 3], (1, 2), None]),
    (lambda x: integers(x, 2), [[1, -2]], [[1], [1, True], [1, 2.0], "ab"]),
    (lambda x: numbers({"a": x}, "a", 3), [[], [2, 0]], [[3], [-1], [1, 1], [True], {}]),
    (lambda x: spec_of("f4", x), [[], [0, 2]], [[-1], [1.0], [True], (1,), None]),
])  # fmt: skip
def test_values_of_exactly_their_type_and_range(function, good, bad):
    for x in good:
        function(x)
    for x in bad:
        with pytest.raises(FormatError, match="malformed"):
            function(x)
    assert is_size(0) and not is_size(-1) and not is_size(True)


def test_arrays_lie_inside_their_file_in_the_shape_that_is_asked_for():
    raw = np.arange(6, dtype="<i8").view(np.uint8)
    arrays = FileArrays(raw, {"a": ["<i8", [2, 2], 16], "late": ["<i8", [3], 32], "none": ["<i8", [0], 48]})
    assert arrays.get("a", "<i8", -1, 2).tolist() == [[2, 3], [4, 5]]
    assert arrays.get("a", "<i8", 2, 2, below=6).tolist() == [[2, 3], [4, 5]]
    assert arrays.get("none", "<i8", -1, below=0).size == 0
    for ask in (("a", "<i4", -1, 2), ("a", "<i8", 3, 2), ("a", "<i8", -1), ("late", "<i8", -1), ("absent", "<i8", -1)):
        with pytest.raises(FormatError, match="malformed"):
            arrays.get(*ask)
    with pytest.raises(FormatError, match="outside of their range"):
        arrays.get("a", "<i8", -1, 2, below=5)
    with pytest.raises(FormatError, match="outside of their range"):
        FileArrays(np.array([-1], "<i8").view(np.uint8), {"a": ["<i8", [1], 0]}).get("a", "<i8", 1, below=9)


@pytest.mark.parametrize(("offset", "strides", "low", "high"), [
    (0, (12, 4), 0, 24), (20, (-12, 4), 8, 32), (8, (4, -4), 0, 16), (4, (0, 0), 4, 8),
])  # fmt: skip
def test_every_element_of_a_view_lies_inside(offset, strides, low, high):
    view = View(Pointer("arena", offset), (2, 3), strides, "f4")
    check_inside(view, high)
    with pytest.raises(FormatError, match="outside of its memory"):
        check_inside(view, high - 1)
    below = View(Pointer("arena", offset - low - 1), (2, 3), strides, "f4")
    with pytest.raises(FormatError, match="outside of its memory"):
        check_inside(below, 1000)
    check_inside(View(Pointer("arena", 99), (0, 3), strides, "f4"), 0)


@pytest.mark.parametrize("start", [-2, -1, 0, 64])
def test_a_value_begins_at_a_byte_or_is_absent(start):
    entry = ["w", "f8", [3], "a.py:1", start]
    if start < -1:
        with pytest.raises(FormatError, match="malformed: variables"):
            variable_of(entry)
        return
    var, place = variable_of(entry)
    assert (var.name, var.where, str(var.spec), place) == ("w", "a.py:1", "float64[3]", start)
    for i, other in ((0, 1), (3, None), (4, True), (4, 1.0)):
        with pytest.raises(FormatError, match="malformed"):
            variable_of([*entry[:i], other, *entry[i + 1 :]])


@pytest.mark.parametrize("missing", [0, 1])
@pytest.mark.parametrize("limit", ["LARGEST", "MOST_VALUES"])
def test_a_manifest_may_have_as_many_bytes_and_values_as_the_limits_say(monkeypatch, limit, missing):
    raw = with_sum(json.dumps({"format": FORMAT, "list": [1, 2, {"a": 3}]}))
    counted = {"LARGEST": len(raw), "MOST_VALUES": sum(raw.count(mark) for mark in (b",", b":", b"[", b"{"))}
    monkeypatch.setattr(manifest, limit, counted[limit] - missing)
    file = np.frombuffer(raw, np.uint8)
    if not missing:
        assert entries_of(file)["list"] == [1, 2, {"a": 3}]
        return
    with pytest.raises(FormatError, match=f"at most {len(raw) - 1}" if limit == "LARGEST" else "holds more than"):
        entries_of(file)


def test_code_of_another_system_or_of_another_processor_of_this_one_does_not_fit():
    target = host_architecture().targets[0].name
    fits = {"version": VERSION, "cgraph": __version__, "system": system_name(), "targets": {target: {}}}
    features = frozenset(host_architecture().needs[target])
    words = system_name().split()
    assert len(words) > 1 and misfit(fits, features) is None
    for i in range(len(words)):
        other = " ".join("other" if i == k else word for k, word in enumerate(words))
        assert misfit(fits | {"system": other}, features) == f"it was saved for {other}; this is {system_name()}"
    for other in (None, "", 3, words[0], f"{system_name()} more"):
        assert misfit(fits | {"system": other}, features).startswith(f"it was saved for {other}; ")
    for version in (VERSION - 1, VERSION + 1, str(VERSION), None):
        assert "it was saved by" in misfit(fits | {"version": version}, features)


@pytest.mark.parametrize("copy", [True, False, None])
def test_a_value_is_copied_unless_told_otherwise(copy):
    var, _ = variable_of(["w", "f4", [16], "a.py:1", -1])
    array = np.frombuffer(bytearray(64 + 128), np.uint8)
    start = -array.ctypes.data % 64
    array = array[start : start + 64].view("f4")
    assert var.assign(array, *([] if copy is None else [copy])) is var
    array[3] = 7
    assert var.value[3] == (7 if copy is False else 0)
    assert np.shares_memory(var.cell.array, array) is (copy is False)
    assert not np.shares_memory(var.value, array), "what is read is a copy"


@pytest.mark.parametrize("text", ["[]", '["format"]', "7", "null", '"cgraph"', "true"])
def test_a_manifest_is_an_object(text):
    """Of which its sum is an entry."""
    raw = text.encode()
    with pytest.raises(FormatError):
        entries_of(np.frombuffer(raw, np.uint8))


def test_a_number_that_is_no_list_of_items_is_named():
    with pytest.raises(FormatError, match="5 is not a list of 2"):
        items(5, 2)
    with pytest.raises(FormatError, match="a is 'x'"):
        get({"a": "x"}, "a", int)
    with pytest.raises(FormatError, match="a is None"):
        get([], "a", int)


def test_a_target_whose_features_no_list_knows_is_not_taken(monkeypatch):
    """And among several that this processor runs the widest one is."""
    own = host_architecture()
    known = [x for x in own.targets if x.name in own.needs]
    narrow, wide = known[0], known[-1]
    every = frozenset().union(*own.needs.values())
    assert target_of({narrow.name: {}, wide.name: {}}, every) == wide.name
    fewer = replace(own, needs={name: x for name, x in own.needs.items() if name != wide.name})
    monkeypatch.setattr(manifest, "host_architecture", lambda: fewer)
    if narrow.name != wide.name:
        assert target_of({narrow.name: {}, wide.name: {}}, every) == narrow.name
    assert target_of({wide.name: {}}, every) is None
