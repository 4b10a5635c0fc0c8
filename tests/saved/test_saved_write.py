"""Writing a folder: what its manifest lists, functions of several targets, and nothing after a failure."""

import json
import os
import shutil
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.formats.model import Model
from cgraph.running.trimming_runner import Trims
from cgraph.saved import write
from cgraph.saved.layout import GRAPH, MANIFEST, STATE, sum_fits
from cgraph.saved.pieces import Pieces
from cgraph.saved.write import bytes_of, facts_of, files_of, save, spec_entry, variable_entry, write_file
from tests.saved.test_cells import step
from tests.support.injection import Lines, events


def manifest_in(files: dict) -> dict:
    (raw,) = files[MANIFEST]
    assert sum_fits(raw)
    return json.loads(raw)


def test_the_manifest_numbers_vars_once_and_lists_every_other_file_with_its_sum():
    x, v, w = cg.Var((3,), "int32", "x"), cg.Var((2, 3), name="v"), cg.Var((3,), name="w")
    v.assign(np.arange(6, dtype="f4").reshape(2, 3))
    f = cg.compile([cg.sum(v * x), v], [x], updates={w: v[1] * 1.0})
    files = files_of([f], ["total", "whole"], b"the graph")
    manifest = manifest_in(files)
    assert [(name, shape) for name, _, shape, _, _ in manifest["variables"]] == [
        ("x", [3]), ("v", [2, 3]), ("w", [3]),
    ]  # fmt: skip
    assert [entry[4] for entry in manifest["variables"]] == [-1, 0, -1], "only v has a value"
    assert (manifest["inputs"], manifest["cells"], manifest["updated"]) == ([0], [1], [2])
    assert [shape for _, shape in manifest["outputs"]] == [list(x.spec.shape) for x in f.outputs]
    assert manifest["names"] == ["total", "whole"] and manifest["single"] is False
    assert set(manifest["files"]) == set(files) - {MANIFEST}
    for name, (nbytes, crc) in manifest["files"].items():
        raw = b"".join(map(bytes, files[name]))
        assert (len(raw), crc32(raw)) == (nbytes, crc)
    assert b"".join(map(bytes, files[GRAPH])) == b"the graph"
    assert np.frombuffer(b"".join(map(bytes, files[STATE])), "f4")[:6].tolist() == list(range(6))


def test_a_single_output_is_told_from_a_list_of_one():
    x = cg.Var((3,), name="x")
    for outputs, single in ((x + 1, True), ([x + 1], False)):
        files = files_of([cg.compile(outputs, [x])], ["y"])
        assert manifest_in(files)["single"] is single and GRAPH not in files


def test_a_var_is_written_with_its_value_of_now():
    x, state = cg.Var((2,), "int16", name="x"), Pieces()
    assert variable_entry(x, state) == ["x", *spec_entry(x), x.where, -1] and state.nbytes == 0
    x.assign([3, 4])
    entry = variable_entry(x, state)
    x.cell.array[:] = 0
    assert entry[-1] == 0 and np.frombuffer(b"".join(map(bytes, state.parts)), "i2")[:2].tolist() == [3, 4]
    assert spec_entry(cg.Var((2, 0), "float64")) == [spec_entry(cg.Var((), "float64"))[0], [2, 0]]


def test_a_file_gets_all_parts_and_is_never_written_over(tmp_path):
    path = tmp_path / "file"
    write_file(path, [b"ab", np.array([99], "u1").data, b""])
    assert path.read_bytes() == b"abc" and path.stat().st_mode & 0o777 == 0o644
    with pytest.raises(FileExistsError):
        write_file(path, [b"x"])
    assert path.read_bytes() == b"abc"


def test_a_file_is_whole_when_it_goes_to_the_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_size))
    write_file(tmp_path / "file", [b"abc"] * 5)
    assert synced == [15]


def test_bytes_of_a_pickle_are_those_of_the_folder(tmp_path):
    f = step()[0]
    save([f], tmp_path / "saved")
    in_folder = {path.name: path.read_bytes() for path in (tmp_path / "saved").iterdir()}
    assert bytes_of([f]) == in_folder


def test_repeated_names_of_outputs_become_different_ones(tmp_path):
    x = cg.Var((2,), name="x")
    f = cg.compile([x + 1, x * 2], [x])
    save([f], tmp_path / "saved", names=["y", "y"])
    assert json.loads((tmp_path / "saved" / MANIFEST).read_bytes())["names"] == ["y", "y_1"]


def test_a_link_to_nothing_is_not_written_over(tmp_path):
    (tmp_path / "saved").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FormatError, match="exists already"):
        save([step()[0]], tmp_path / "saved")
    assert os.listdir(tmp_path) == ["saved"]


def test_functions_are_saved_together_only_with_the_same_vars_in_the_same_roles():
    x, v, w = cg.Var((2,), name="x"), cg.Var((2,), name="v"), cg.Var((2,), name="w")
    for each in (v, w):
        each.assign([1.0, 2.0])
    base = cg.compile(x + v + w, [x])
    same = cg.compile(x * v * w, [x])
    others = [
        cg.compile(x + v + w, [x, v]),
        cg.compile(x + v, [x]),
        cg.compile(x + v + w, [x], updates={v: v + 1}),
        cg.compile(cg.sum(x + v + w), [x]),
        cg.compile([x + v + w, x], [x]),
    ]
    assert facts_of(same) == facts_of(base)
    assert all(facts_of(other) != facts_of(base) for other in others)
    updating = [cg.compile(x + v + w, [x], updates={each: each + 1}) for each in (v, w)]
    assert facts_of(updating[0]) != facts_of(updating[1])


def test_functions_of_other_vars_are_not_saved_together(tmp_path):
    x, v = cg.Var((2,), name="x"), cg.Var((2,), name="v")
    functions = [cg.compile(x + 1, [x]), cg.compile(v + 1, [v])]
    with pytest.raises(FormatError, match="have the same Vars and outputs. Compile one graph for each target"):
        save(functions, tmp_path / "saved")
    assert not list(tmp_path.iterdir())


def test_names_are_as_many_as_outputs_and_stay_when_a_function_is_saved_again(tmp_path):
    x = cg.Var((2,), name="x")
    function = cg.compile([x + 1, x * 2], [x])
    for names in (["one"], ["one", "two", "three"]):
        with pytest.raises(FormatError, match=f"{len(names)} names for 2 outputs"):
            save([function], tmp_path / "refused", names=names)
    assert not list(tmp_path.iterdir())
    save([function], tmp_path / "first", names=["one", "two"])
    cg.load(tmp_path / "first").save(tmp_path / "second")
    assert tuple(cg.load(tmp_path / "second").names) == ("one", "two")


def save_with_an_exception_at(function: cg.Function, at: int, parent: Path) -> None:
    """Raise at this event of saving: a whole folder is there afterwards, or nothing."""
    if Lines(at).during(lambda: function.save(parent / "saved")):
        assert set(os.listdir(parent)) <= {"saved"}
    shutil.rmtree(parent / "saved", ignore_errors=True)


def test_an_exception_at_any_line_of_writing_a_folder_leaves_nothing(tmp_path):
    """Each line of the module that writes, when it first runs."""
    function = step()[0]
    function.save(tmp_path / "warm")  # the first time reads kernels from the store
    lines = events(lambda: function.save(tmp_path / "counted"))
    first = {line: at for at, line in reversed(list(enumerate(lines, 1))) if line[0] == write.__file__}
    assert len(first) > 20
    (tmp_path / "parent").mkdir()
    for at in sorted(first.values()):
        save_with_an_exception_at(function, at, tmp_path / "parent")


@pytest.mark.slow
def test_an_exception_at_any_event_while_files_are_written_leaves_nothing(tmp_path):
    """Each event from the one on that makes the first file, and some of those before."""
    function = step()[0]
    function.save(tmp_path / "warm")
    before = len(events(lambda: write.files_of([function], [])))
    count = len(events(lambda: function.save(tmp_path / "counted")))
    assert count > before + 100
    (tmp_path / "parent").mkdir()
    for at in (*range(1, before, 29), *range(before, count + 1)):
        save_with_an_exception_at(function, at, tmp_path / "parent")


@pytest.mark.parametrize(
    "name",
    ["m.h5", "m.keras", "m.npz", "m.onnx", "m.pt", "m.pth", "m.safetensors", "m.tflite", "model.NPZ", "model.v2.onnx"],
)
def test_the_name_of_a_file_is_no_folder(tmp_path, name):
    with pytest.raises(FormatError, match="is the name of a file, and save writes a folder"):
        cg.compile(cg.Var((2,)) + 1).save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_function_is_read_between_two_of_its_runs(monkeypatch, tmp_path):
    """Else a run could change its cells while they are written. For a folder and for a pickle."""
    function, inside, reads = step()[0], [], []
    between, parts = type(function).between_runs, write.file_parts

    def waiting(self, work):
        inside.append(self)
        try:
            return between(self, work)
        finally:
            inside.pop()

    monkeypatch.setattr(type(function), "between_runs", waiting)
    monkeypatch.setattr(write, "file_parts", lambda *given: reads.append(list(inside)) or parts(*given))
    save([function], tmp_path / "saved")
    bytes_of([function])
    assert reads == [[function], [function]]


def test_functions_that_cut_their_results_in_other_ways_are_not_saved_together():
    x, n = cg.Var((3,), name="x"), cg.Var((), "int64", "n")
    functions = [Model((x, n), (x + 0,), ("y",), counts={0: {0: count}}).compile() for count in (n + 0, n + 0)]
    one, other = functions
    assert facts_of(one) == facts_of(other)
    other.trims = Trims(other.trims.cases, ("a condition",))
    assert facts_of(one) != facts_of(other)


def test_each_function_is_saved_in_the_form_that_can_be_saved(monkeypatch):
    class Runs:
        """A function with another one in its place when it is saved."""

        def __init__(self, name: str) -> None:
            self.name = name

        def for_saving(self) -> str:
            return f"{self.name} for saving"

        def between_runs(self, work):
            return [self.name, *work()]

    monkeypatch.setattr(write, "file_parts", lambda functions, names, graph: [*functions, names, graph])
    assert files_of([Runs("one"), Runs("two")], ["y"], b"g") == [
        "one", "one for saving", "two for saving", ["y"], b"g",
    ]  # fmt: skip


@pytest.mark.parametrize("count", [2, 3])
def test_functions_that_are_saved_together_are_for_different_targets(tmp_path, count):
    x = cg.Var((2,), name="x")
    functions = [cg.compile(cg.cumsum(x, 0) + i, [x]) for i in range(count)]
    name = write.target_of(functions[0]).name
    with pytest.raises(FormatError, match=f"two functions are for {name}. Compile them for different targets"):
        save(functions, tmp_path / "saved")
    assert not list(tmp_path.iterdir())
