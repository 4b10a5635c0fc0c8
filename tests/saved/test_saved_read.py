"""Loading: options that apply, folders that are no functions, images in memory, cells of one function in another."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError, GraphError, InputError
from cgraph.saved import read
from cgraph.saved.layout import MANIFEST, STATE, with_sum
from cgraph.saved.read import graph_of, not_saved, unpickle
from cgraph.saved.write import bytes_of, save


def function(scale: float = 1.0) -> cg.Function:
    x, w, count = cg.Var((3,), name="x"), cg.Var((3,), name="w"), cg.Var((), name="count")
    w.assign(np.arange(3, dtype="f4"))
    return cg.compile(cg.cumsum(w * x, 0) * scale + count, [x], {count: count + 1})


@pytest.fixture
def saved(tmp_path) -> Path:
    f = function()
    f.cells[1].assign(4.0)
    f.save(tmp_path / "saved")
    return tmp_path / "saved"


ONES = np.ones(3, "f4")


def test_cells_have_their_values_in_memory_of_their_own(saved):
    f, raw = cg.load(saved), (saved / STATE).read_bytes()
    assert {name: x.value.tolist() for name, x in f.state.items()} == {"w": [0, 1, 2], "count": 4}
    np.testing.assert_array_equal(f(ONES), np.cumsum([0, 1, 2]) + 4)
    assert f.state["count"].value == 5 and (saved / STATE).read_bytes() == raw
    assert cg.load(saved).state["count"].value == 4


def test_a_cell_without_a_value_has_none_after_loading(tmp_path):
    function().save(tmp_path / "saved")
    assert {name: x.cell.array is None for name, x in cg.load(tmp_path / "saved").state.items()} == {
        "w": False, "count": True,
    }  # fmt: skip


@pytest.mark.parametrize("options", [
    {"shapes": {}}, {"constants": {}}, {"maximum": {}}, {"state": {}}, {"weights": "w"}, {"budget": "1MiB"},
    {"rows": []},
])  # fmt: skip
def test_options_of_files_change_nothing_in_a_folder_and_are_refused(saved, options):
    (name,) = options
    with pytest.raises(FormatError, match=f"{name}= changes nothing: a saved function is planned"):
        cg.load(saved, **options)


@pytest.mark.parametrize("name", ["trust", "verify", "in_memory"])
def test_options_of_folders_are_refused_for_files(tmp_path, name):
    (tmp_path / "model.onnx").write_bytes(b"")
    with pytest.raises(FormatError, match=f"{name}= applies to saved folders alone"):
        cg.load(tmp_path / "model.onnx", **{name: True})


def test_wrong_numbers_of_threads_come_first(tmp_path):
    with pytest.raises(GraphError, match="threads"):
        cg.load(tmp_path / "nothing", threads=-1)


def test_a_folder_of_another_kind_says_what_it_is(tmp_path):
    with pytest.raises(FormatError, match="without manifest.json: not a saved function"):
        cg.load(tmp_path)
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(FormatError, match="TensorFlow SavedModel. Convert it to ONNX") as error:
        cg.load(tmp_path)
    assert str(error.value).startswith(str(tmp_path)) and error.value.__cause__ is None
    assert str(not_saved(True)) in str(error.value)
    with pytest.raises(FormatError, match="No such file"):
        cg.load(tmp_path / "nothing")


@pytest.mark.parametrize("in_memory", [False, True])
def test_threads_and_memory_do_not_change_bits(saved, in_memory):
    f = function()
    f.cells[1].assign(4.0)
    want = f(ONES)
    for threads in (1, 3):
        got = cg.load(saved, threads=threads, in_memory=in_memory, verify=True)
        assert got.program.threads == threads and got(ONES).tobytes() == want.tobytes()


def test_a_pickle_is_loaded_from_bytes(saved):
    f = cg.load(saved)
    again = unpickle(bytes_of([f]))
    assert again(ONES).tobytes() == f(ONES).tobytes() and again.names == f.names
    assert read.unpickled is unpickle, "pickles of earlier versions name it so"


def test_two_loaded_functions_share_cells_of_a_name_until_a_spec_differs(saved, tmp_path):
    f, other = cg.load(saved), cg.load(saved)
    f.share_cells(other)
    f(ONES)
    assert other.state["count"].value == 5 and f.state["w"].cell is other.state["w"].cell
    x, w, count = cg.Var((3,), name="x"), cg.Var((2,), name="w"), cg.Var((), name="count")
    w.assign([1.0, 2.0])
    different = cg.compile(cg.sum(w) * x + count, [x], {count: count + 1})
    before = [x.cell for x in f.state.values()]
    with pytest.raises(InputError, match=r"w float32\[3\] cannot share a cell with float32\[2\]"):
        f.share_cells(different)
    assert [x.cell for x in f.state.values()] == before


def test_lists_without_end_and_values_outside_their_file_are_malformed(saved):
    entries = json.loads((saved / MANIFEST).read_bytes())
    entries.pop("crc32")
    for change in (lambda e: e["variables"][1].__setitem__(4, 10**6), lambda e: e.update(single=1)):
        spoiled = json.loads(json.dumps(entries))
        change(spoiled)
        (saved / MANIFEST).write_bytes(with_sum(json.dumps(spoiled)))
        with pytest.raises(FormatError, match="malformed"):
            cg.load(saved)


def test_the_graph_is_summed_unless_its_format_had_no_sum(saved, tmp_path):
    save([cg.load(saved)], tmp_path / "again", b"not a graph")
    entries = json.loads((tmp_path / "again" / MANIFEST).read_bytes())
    folder = read.Folder(tmp_path / "again", False)
    assert bytes(graph_of(folder, entries)) == b"not a graph"
    (tmp_path / "again" / "graph.onnx").write_bytes(b"NOT a graph")
    for version in (1, 2):
        assert bytes(graph_of(folder, {"version": version})) == b"NOT a graph"
    for wrong in (entries, {**entries, "files": None}, {"version": 3}):
        with pytest.raises(FormatError):
            graph_of(folder, wrong)
    folder.close()
    assert os.path.isdir(tmp_path / "again")
