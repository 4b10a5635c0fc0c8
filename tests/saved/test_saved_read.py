"""Loading: options that apply, folders that are no functions, images in memory, graphs."""

import json
import os

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError, GraphError
from cgraph.saved import read
from cgraph.saved.layout import MANIFEST, with_sum
from cgraph.saved.read import compile_graph, graph_of, not_saved, unpickle
from cgraph.saved.write import bytes_of, save

ONES = np.ones(3, "f4")


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
    with pytest.raises(FormatError, match=f"{name}= applies to saved folders only"):
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


def test_a_pickle_is_loaded_from_bytes(saved):
    f = cg.load(saved)
    again = unpickle(bytes_of([f]))
    assert again(ONES).tobytes() == f(ONES).tobytes() and again.names == f.names
    assert read.unpickled is unpickle, "pickles of earlier versions name it so"


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


@pytest.mark.parametrize("path", [b"model.onnx", 3, None, cg.Var((2,))])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(cg.ArgumentError, match=rf"load takes the path of a file or folder, not {type(path).__name__}"):
        cg.load(path)


@pytest.mark.parametrize(
    ("entries", "single", "names"),
    [
        ({"single": True, "names": ["a", "b"]}, True, ["a", "b"]), ({"single": False, "names": []}, False, []),
        ({"single": 1, "names": ["a", 1]}, False, ()), ({"names": "ab"}, False, ()), ({}, False, ()),
    ],
)  # fmt: skip
def test_a_graph_is_compiled_with_the_names_and_threads_that_are_valid(monkeypatch, entries, single, names):
    """The manifest may be one of another version, of which nothing is checked."""
    calls = []
    monkeypatch.setattr(read.slots, "compile_onnx", lambda *given: calls.append(given))
    compile_graph(memoryview(b"graph"), entries, 3)
    assert calls == [(b"graph", single, 3, names)]


@pytest.mark.parametrize("name", ["constants", "program", "kernels", "interpreter", "state"])
def test_a_pickle_of_damaged_bytes_is_refused_whichever_file_they_are_of(name):
    """Constants too, which a folder is not asked for unless told so."""
    x = cg.Var((300,), name="x")
    files = bytes_of([cg.compile(cg.cumsum(x * np.arange(300, dtype="f4"), 0) + cg.Var((), name="w").assign(3.0), [x])])
    (file,) = [key for key in files if key.startswith(name)]
    assert unpickle(files).inputs[0].name == "x"
    damaged = files | {file: files[file][:-1] + bytes([files[file][-1] ^ 1])}
    with pytest.raises(FormatError, match=f"{file} is not what was saved"):
        unpickle(damaged)


@pytest.mark.parametrize("verify", [False, True])
def test_constants_of_a_folder_are_summed_if_told_and_all_else_always(tmp_path, verify):
    x = cg.Var((300,), name="x")
    cg.compile(cg.cumsum(x * np.arange(300, dtype="f4"), 0), [x]).save(tmp_path / "saved")
    for path in sorted((tmp_path / "saved").glob("*.bin")):
        raw = path.read_bytes()
        if not raw:
            continue
        path.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
        if path.name.startswith("constants") and not verify:
            cg.load(tmp_path / "saved", verify=verify)
        else:
            with pytest.raises(FormatError, match=f"{path.name} is not what was saved"):
                cg.load(tmp_path / "saved", verify=verify)
        path.write_bytes(raw)


def test_a_pickle_of_another_version_is_refused_whatever_it_holds(saved):
    """A graph in a folder alone is compiled instead of code that does not fit."""
    files = bytes_of([cg.load(saved)])
    entries = json.loads(files[MANIFEST])
    entries.pop("crc32")
    other = files | {MANIFEST: with_sum(json.dumps(entries | {"cgraph": "0.1"}))}
    for more in ({}, {"graph.onnx": b"a graph"}):
        with pytest.raises(FormatError, match=r"it was saved by cgraph 0\.1"):
            unpickle(other | more)


@pytest.mark.parametrize("change", [{"cgraph": "0.0.1"}, {"version": 1}, {"system": "another one"}, {"targets": {}}])
def test_a_pickle_that_does_not_fit_is_refused_even_if_it_has_a_graph(monkeypatch, change):
    """Only that of a folder is compiled."""
    monkeypatch.setattr(read, "compile_graph", lambda *_: pytest.fail("a graph was compiled"))
    x = cg.Var((3,), name="x")
    files = bytes_of([cg.compile(cg.cumsum(x, 0), [x])])
    entries = json.loads(files[MANIFEST])
    entries.pop("crc32")
    reasons = {"cgraph": "it was saved by", "version": "it was saved by", "system": "it was saved for another one",
               "targets": "it holds code for nothing"}  # fmt: skip
    changed = files | {MANIFEST: with_sum(json.dumps(entries | change)), "graph.onnx": b"a graph"}
    with pytest.raises(FormatError, match=reasons[next(iter(change))]):
        unpickle(changed)
    assert unpickle(files | {MANIFEST: with_sum(json.dumps(entries))})(ONES).tolist() == [1, 2, 3]
