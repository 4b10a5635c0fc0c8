"""Folders that are damaged, foreign, or being written: a typed error, or the whole function."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.errors import FormatError
from cgraph.formats.onnx import serialised
from cgraph.kernels.isa.architectures import host_architecture
from cgraph.kernels.target import host_target
from cgraph.saved import folder as saved_folder
from cgraph.saved import read
from cgraph.saved.folder import Folder
from cgraph.saved.layout import GRAPH, MANIFEST, PAGE, VERSION, with_sum
from cgraph.saved.manifest import MOST_VALUES
from cgraph.saved.parts import places_of
from cgraph.saved.write import save
from cgraph.system.file_ownership import stamp_of
from tests.support.exchange import exchanged_before_call
from tests.support.injection import Lines, events
from tests.support.kernels import TARGETS
from tests.support.saved import CASES, held, network, normal
from tests.support.tolerance import assert_near


def small() -> cg.Function:
    x, w = cg.Var((4, 3), name="x"), held(3, 5, name="w")
    return cg.compile([cg.tanh(x @ w) @ normal(5, 2), cg.sum(w)], [x], updates={w: w * 0.5})


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("function") / "saved"
    small().save(folder)
    return folder


@pytest.fixture
def copy(saved, tmp_path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "copy"))


@pytest.fixture
def full(copy) -> Path:
    """With the graph, which the manifest lists as any other file."""
    shutil.rmtree(copy)
    x, w = cg.Var((4, 3), name="x"), cg.Var((3, 5), name="w")
    y = cg.tanh(x @ w)
    save([small()], copy, graph=serialised([y], [x, w]))
    return copy


def rewritten(folder: Path, change) -> None:
    """Change the manifest, and give it the sum of the new text."""
    entries = json.loads((folder / MANIFEST).read_bytes())
    entries.pop("crc32")
    change(entries)
    (folder / MANIFEST).write_bytes(with_sum(json.dumps(entries)))


def refused(folder: Path, match: str, **options: bool) -> None:
    with pytest.raises(FormatError, match=match):
        cg.load(folder, **options)


# -- damage ------------------------------------------------------------------------------------------------------------


def test_every_changed_byte_is_noticed(full):
    step = {MANIFEST: 1, "state.bin": 1}
    for path in full.iterdir():
        whole = path.read_bytes()
        for at in range(0, len(whole), step.get(path.name, 37)):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
            refused(full, ".", verify=True)
        path.write_bytes(whole)
    cg.load(full, verify=True)


def test_every_file_that_is_cut_off_longer_or_missing_is_noticed(full):
    for path in list(full.iterdir()):
        whole = path.read_bytes()
        for length in {0, 1, len(whole) // 2, len(whole) - 1}:
            path.write_bytes(whole[:length])
            refused(full, ".")
        path.write_bytes(whole + b"\0")
        refused(full, ".")
        path.unlink()
        refused(full, "No such file|a folder without manifest.json")
        path.write_bytes(whole)
    cg.load(full)


def test_files_of_another_function_are_noticed(copy, tmp_path):
    x = cg.Var((4, 3), name="x")
    cg.compile(cg.cumsum(cg.sin(x @ normal(3, 3))), [x]).save(tmp_path / "other")
    for path in tmp_path.glob("other/*-*.bin"):
        whole = (copy / path.name).read_bytes()
        (copy / path.name).write_bytes(path.read_bytes())
        if path.read_bytes() != whole:
            refused(copy, path.name)
        (copy / path.name).write_bytes(whole)


def test_constants_are_summed_when_that_is_asked_for(copy):
    (path,) = copy.glob("constants-*")
    whole = path.read_bytes()
    path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    cg.load(copy)
    refused(copy, "is not what was saved", verify=True)


def test_nothing_that_is_no_saved_function_is_one(tmp_path):
    refused(tmp_path / "absent", "No such file")
    refused(tmp_path, "a folder without manifest.json")
    (tmp_path / MANIFEST).write_bytes(b"{}")
    refused(tmp_path, "cut off or changed")
    refused(tmp_path / MANIFEST, "is not a model that can be read")


def test_a_manifest_without_end_is_not_read(copy):
    with (copy / MANIFEST).open("r+b") as file:
        file.truncate(1 << 40)  # a hole, which takes no disk
    refused(copy, "has 1099511627776 bytes")  # which the manifest's reader refuses, or already its mapping


def test_a_file_that_cannot_be_mapped_is_refused_with_its_size(copy, monkeypatch):
    def full(handle, nbytes):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(saved_folder, "map_descriptor", full)
    refused(
        copy, f"manifest.json has {(copy / MANIFEST).stat().st_size} bytes, which cannot be mapped: Cannot allocate"
    )


CHANGES = {
    "version": lambda m: m.update(version=VERSION + 1),
    "cgraph": lambda m: m.update(cgraph="0.0.1"),
    "system": lambda m: m.update(system="plan9 mips"),
    "holds code for": lambda m: m.update(targets={}),
    "not a saved function": lambda m: m.update(format="other"),
}


@pytest.mark.parametrize("match", CHANGES)
def test_another_version_system_or_format_is_refused_by_name(copy, match):
    rewritten(copy, CHANGES[match])
    refused(copy, "it was saved" if match in ("version", "cgraph", "system") else match)


def test_a_processor_that_lacks_a_feature_is_told_what_there_is(copy, monkeypatch):
    monkeypatch.setattr(read, "host_features", lambda: frozenset())
    if host_target().name != "portable":
        refused(copy, f"it holds code for {host_target().name}, which this processor does not run")


def test_a_name_that_stands_twice_in_an_object_is_refused(copy):
    raw = (copy / MANIFEST).read_bytes()
    entries = json.loads(raw)
    entries.pop("crc32")
    text = json.dumps(entries).replace('"single"', '"names": [], "single"')
    (copy / MANIFEST).write_bytes(with_sum(text))
    refused(copy, "two entries of one name")


@pytest.mark.parametrize("rows", [[], [0], [0, 1 << 40], [0, -1], [0, "0"], None])
def test_rows_after_which_outputs_are_complete_are_ends_of_steps(copy, rows):
    def change(entries):
        (entry,) = entries["targets"].values()
        entry["complete"] = rows

    rewritten(copy, change)
    refused(copy, "Save the function again")


@pytest.mark.parametrize("name", ["inputs", "cells", "updated"])
def test_a_variable_that_is_named_twice_is_refused(copy, name):
    rewritten(copy, lambda entries: entries[name].__setitem__(slice(None), [0, 0]))
    refused(copy, name)


def test_more_values_than_a_manifest_may_hold_are_refused_before_they_are_made(copy):
    rewritten(copy, lambda entries: entries.update(more=[0] * MOST_VALUES))
    refused(copy, "holds more than 250,000 values")


def malformations(entries: dict) -> list:
    """Changes of each field of a manifest to what it is not: other types, other numbers.

    Items of lists at one place are read by one rule: the first two have each change, each later one three of nine.
    """
    found: list = []
    visits: Counter = Counter()

    def visit(at: list, value: object) -> None:
        others: list = [None, -1, 1 << 40, "x", [], {}, [[]], 0.5, True]
        place = tuple("item" if isinstance(key, int) else key for key in at)
        visits[place] += 1
        if visits[place] > 2:
            others = others[visits[place] % 3 :: 3]
        found.extend((at, other) for other in others if type(other) is not type(value) or other != value)
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, x in inner:
            visit([*at, key], x)

    visit([], entries)
    return [(at, other) for at, other in found if at]


def test_a_manifest_of_nonsense_with_the_right_sum_is_a_typed_error(copy):
    """Or a function that is not run here: sums find damage, not malice."""
    raw = (copy / MANIFEST).read_bytes()
    entries = json.loads(raw)
    entries.pop("crc32")
    count = 0
    for at, other in malformations(entries):
        changed = json.loads(json.dumps(entries))
        inner = changed
        for key in at[:-1]:
            inner = inner[key]
        inner[at[-1]] = other
        (copy / MANIFEST).write_bytes(with_sum(json.dumps(changed)))
        try:
            cg.load(copy)
        except FormatError:
            count += 1
    assert count > 1000


FREE = ("args", "labels", "again.kept", "kernels.inner", "interpreter.starts", "interpreter.inner")


def test_an_array_that_is_shorter_than_another_says_is_refused(copy):
    """Not those that may have any length, nor what this process has read already."""

    def cut(entries: dict, name: str, by: int) -> None:
        (entry,) = entries["targets"].values()
        entry["arrays"][name][1][0] -= by

    (entry,) = json.loads((copy / MANIFEST).read_bytes())["targets"].values()
    names = [name for name, (_, (length, *_), _) in entry["arrays"].items() if length and name not in FREE]
    assert len(names) > 10
    for name in names:
        rewritten(copy, partial(cut, name=name, by=1))
        refused(copy, "malformed")
        rewritten(copy, partial(cut, name=name, by=-1))
    cg.load(copy)


@pytest.mark.parametrize("behind", [-7, -1, 0, 1, 1 << 40])
def test_an_address_that_does_not_lie_inside_the_code_is_refused(copy, behind):
    """An address takes 8 bytes of the code."""
    (code,) = copy.glob("kernels-*")

    def move(entries: dict) -> None:
        (entry,) = entries["targets"].values()
        entry["kernels.outer"][-1][1] = code.stat().st_size + behind

    rewritten(copy, move)
    refused(copy, "addresses outside of the code")


def test_a_program_that_writes_a_var_that_is_not_updated_is_refused(copy):
    def change(entries: dict) -> None:
        (entry,) = entries["targets"].values()
        assert [name for name, *_ in entries["variables"]] == ["x", "w"] and entries["updated"] == [1]
        entry["targets"] = [0]

    rewritten(copy, change)
    refused(copy, "malformed: targets")


def test_pieces_of_a_ring_lie_in_their_file():
    for start, length, size in ((0, PAGE, PAGE), (PAGE, 1, 2 * PAGE), (PAGE, PAGE, 2 * PAGE), (0, 0, 0)):
        assert places_of([8, [[start, length]]], size) == (8, [(start, length)])
    for start, length, size in ((0, PAGE, PAGE - 1), (0, PAGE + 1, PAGE + 1), (1, 1, 9 * PAGE), (PAGE, 1, PAGE)):
        with pytest.raises(FormatError, match="weights outside of their file"):
            places_of([8, [[0, 0], [start, length]]], size)


@pytest.mark.parametrize("depth", [150, 500, 900, 100_000])
def test_lists_without_end_are_refused(copy, depth):
    raw = (copy / MANIFEST).read_bytes()
    text = raw[: raw.rindex(b', "crc32"')].decode() + "}"
    for field in ("kernels", "views"):
        changed = text.replace(f'"{field}": [[', f'"{field}": [[' + "[" * depth + "]" * depth + ", ", 1)
        (copy / MANIFEST).write_bytes(with_sum(changed))
        refused(copy, "malformed|not JSON")


# -- whose it is -------------------------------------------------------------------------------------------------------


def test_what_others_can_write_is_refused_and_trusted_when_told(full):
    for path in (full, *full.iterdir()):
        mode = path.stat().st_mode
        for bit in (0o002, 0o020):
            path.chmod(mode | bit)
            refused(full, "may have been written by others")
            cg.load(full, trust=True)
        path.chmod(mode)
    cg.load(full)


def test_a_folder_in_one_that_others_can_write_is_refused(copy):
    copy.parent.chmod(0o777)
    refused(copy, "may have been written by others")
    copy.parent.chmod(0o1777)
    cg.load(copy)


def test_another_owner_is_refused(copy, monkeypatch):
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    refused(copy, "may have been written by others")


def test_no_link_is_followed_inside_and_no_second_name_is_trusted(full, tmp_path):
    for path in list(full.iterdir()):
        moved = tmp_path / "moved"
        path.rename(moved)
        path.symlink_to(moved)
        refused(full, ".", trust=True)
        path.unlink()
        os.link(moved, path)
        refused(full, "may have been written by others")
        path.unlink()
        os.mkfifo(path)
        refused(full, "not a regular file", trust=True)
        path.unlink()
        moved.rename(path)
    link = tmp_path / "link"
    link.symlink_to(full)
    cg.load(link)


# -- the graph -------------------------------------------------------------------------------------------------------


def changed(path: Path) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))


def moved_behind_a_link(path: Path) -> None:
    path.rename(path.parent.with_name("moved"))
    path.symlink_to(path.parent.with_name("moved"))


def replaced_by_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


SPOILT = {
    "is not what was saved": changed,
    "has 1 bytes": lambda path: path.write_bytes(b"x"),
    "has 0 bytes": lambda path: path.write_bytes(b""),
    "symbolic links": moved_behind_a_link,
    "not a regular file": replaced_by_a_pipe,
    "may have been written by others": lambda path: path.chmod(0o666),
    "may have been written": lambda path: os.link(path, path.parent.with_name("second")),
}


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize("match", SPOILT)
def test_the_graph_is_checked_as_every_other_file_whether_it_is_compiled_or_not(full, match, anew):
    if anew:
        rewritten(full, lambda m: m.update(cgraph="9.9"))
    SPOILT[match](full / GRAPH)
    refused(full, match, verify=True)
    if SPOILT[match] is not changed:
        refused(full, match)


def test_a_graph_that_the_manifest_does_not_list_is_not_compiled_but_of_formats_that_listed_none(full):
    rewritten(full, lambda m: (m.update(cgraph="0.0.1"), m["files"].pop(GRAPH)))
    refused(full, "malformed")
    for version in (1, 2):
        rewritten(full, lambda m, version=version: m.update(version=version))
        assert [x.name for x in cg.load(full).inputs] == ["x", "w"]


def test_the_graph_that_is_compiled_is_the_file_that_was_summed(full, monkeypatch):
    """Its name leads elsewhere as soon as it was opened."""
    rewritten(full, lambda m: m.update(cgraph="9.9"))
    known = read.check_file

    def exchanged(name, *args):
        (full / GRAPH).unlink()
        (full / GRAPH).write_bytes(b"something else")
        return known(name, *args)

    monkeypatch.setattr(read, "check_file", exchanged)
    assert [x.name for x in cg.load(full).inputs] == ["x", "w"]


@pytest.mark.parametrize("part", ["outer", "outer/inner", "outer/inner/saved"])
def test_whatever_is_exchanged_while_a_folder_is_opened_is_refused(saved, tmp_path, monkeypatch, part):
    """Before each call to the system, in turn, a part of the path becomes a link to where others can write."""
    for at in range(60):
        root = tmp_path / f"{at}"
        shutil.copytree(saved, root / "outer/inner/saved")
        for evil in ("evil", "evil/inner", "evil/inner/saved", "evil/saved"):
            (root / evil).mkdir()
            (root / evil).chmod(0o777)
        with exchanged_before_call(monkeypatch, ("open", "fstat", "stat", "lstat"), at, root, part) as calls:
            try:
                opened = Folder(root / "outer/inner/saved", trust=False)
            except FormatError:
                opened = None
        if opened is not None:
            evil = {path.stat().st_ino for path in (root / "evil").rglob("*")}
            assert os.fstat(opened._handle).st_ino not in evil
            opened.close()
        if len(calls) <= at:
            return
    pytest.fail("more calls than were tried")


# -- writing -----------------------------------------------------------------------------------------------------------


def test_a_folder_that_is_written_is_whole_or_absent(tmp_path):
    function, folder = small(), tmp_path / "saved"
    function.save(tmp_path / "warm")
    lines = events(lambda: function.save(tmp_path / "first"))
    for at in range(1, len(lines) + 1, 29):
        Lines(at).during(lambda: function.save(folder))
        if folder.exists():
            cg.load(folder, verify=True)
            shutil.rmtree(folder)
        for left in tmp_path.glob(".saved.*.part"):
            shutil.rmtree(left)


def test_a_process_that_is_killed_while_it_writes_leaves_a_whole_folder_or_none(tmp_path):
    code = (
        "import sys, itertools\nfrom tests.saved.test_folder import small\nfunction = small()\n"
        "print('ready', flush=True)\nfor i in itertools.count(): function.save(f'{sys.argv[1]}/{i}')"
    )
    for i in range(3):
        root = tmp_path / f"try{i}"
        root.mkdir()
        child = subprocess.Popen([sys.executable, "-c", code, str(root)], stdout=subprocess.PIPE)
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        time.sleep(0.05 * (i + 1))
        child.send_signal(signal.SIGKILL)
        child.wait()
        for folder in root.iterdir():
            if not folder.name.endswith(".part"):
                cg.load(folder, verify=True)


def test_nothing_is_overwritten(saved):
    with pytest.raises(FormatError, match="exists already"):
        small().save(saved)


def test_a_read_only_folder_serves(copy):
    for path in (*copy.iterdir(), copy):
        path.chmod(0o555 if path is copy else 0o444)
    assert len(cg.load(copy)(normal(4, 3))) == 2


def test_what_cannot_be_saved_is_refused_by_name(tmp_path):
    x = cg.Var((2, 2), name="x")
    with pytest.raises(FormatError, match="delay"):
        cg.compile(cg.delay(np.negative, x), [x]).save(tmp_path / "saved")
    for engine in ("reference", "cuda-sim"):
        with pytest.raises(FormatError, match="only what the CPU engine compiled"):
            cg.compile(x + 1, [x], engine=engine).save(tmp_path / "saved")
    function = small()
    with pytest.raises(FormatError, match="no cells"):
        function.save(tmp_path / "saved", graph=b"")
    with pytest.raises(FormatError, match="the same Vars and outputs"):
        function.save(tmp_path / "saved", also=[small()])
    with pytest.raises(FormatError, match="two functions are for"):
        function.save(tmp_path / "saved", also=[function])
    assert not list(tmp_path.iterdir())


# -- several targets, and the graph beside them ------------------------------------------------------------------------


def test_the_widest_target_that_the_processor_runs_is_taken(tmp_path, monkeypatch):
    x = cg.Var((4, 8), name="x")
    y = cg.tanh(x @ normal(8, 20))
    first, *others = (cg.compile(y, [x], engine=CpuEngine(target)) for target in TARGETS)
    names = {f.program.target.name: f for f in (first, *others)}
    first, *others = names.values()
    first.save(tmp_path / "saved", also=others)
    a = normal(4, 8)
    for name, function in names.items():
        monkeypatch.setattr(read, "host_features", lambda name=name: frozenset(host_architecture().needs[name]))
        loaded = cg.load(tmp_path / "saved")
        assert loaded.parts.target == name
        assert loaded(a).tobytes() == function(a).tobytes()


def test_a_graph_beside_it_is_compiled_where_the_program_does_not_fit(tmp_path):
    x = cg.Var((4, 8), name="x")
    y = cg.tanh(x @ normal(8, 20))
    function = cg.compile(y, [x])
    function.save(tmp_path / "saved", graph=serialised(y, [x]))
    assert isinstance(cg.load(tmp_path / "saved"), cg.SavedFunction)
    rewritten(tmp_path / "saved", lambda m: m.update(cgraph="9.9"))
    found = cg.load(tmp_path / "saved")
    a = normal(4, 8)
    assert isinstance(found, cg.Function)
    assert_near(found(a), function(a), "float32 formulas")


# -- what a process keeps ----------------------------------------------------------------------------------------------


def test_functions_that_are_dropped_give_back_their_memory(tmp_path):
    CASES["network"]().function.save(tmp_path / "saved")
    code = (
        "import gc, os, sys\nimport numpy as np\nfrom cgraph import load\n"
        "def resident():\n    gc.collect()\n    return int(open('/proc/self/statm').read().split()[1]) * 4096\n"
        "def once():\n    f = load(sys.argv[1], in_memory=True)\n    f(np.zeros(f.inputs[0].spec.shape, 'f4'))\n"
        "for _ in range(10): once()\nbefore = resident()\nfor _ in range(100): once()\nprint(resident() - before)"
    )
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path / "saved")], capture_output=True, text=True)
    assert int(run.stdout) < 1 << 20, run.stderr


@pytest.mark.slow
def test_a_process_grows_by_the_constants_and_the_plan(tmp_path):
    """With the pages of the mapped file that were read, which are the system's to take back."""
    function = network("resnet18").function
    function.save(tmp_path / "saved")
    code = (
        "import sys\nimport numpy as np\nfrom cgraph import load\n"
        "def largest():\n    lines = open('/proc/self/status').read().splitlines()\n"
        "    return next(int(line.split()[1]) for line in lines if line.startswith('VmHWM')) * 1024\n"
        "before = largest()\nf = load(sys.argv[1])\nx = np.zeros(f.inputs[0].spec.shape, 'f4')\n"
        "for _ in range(20): f(x)\nprint(largest() - before)"
    )
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path / "saved")], capture_output=True, text=True)
    constants = sum(path.stat().st_size for path in tmp_path.glob("saved/*"))
    assert int(run.stdout) <= constants + function.nbytes + (5 << 20), run.stderr


def test_a_folder_that_is_refused_is_closed_and_each_file_has_its_own_stamp(saved, monkeypatch):
    names = [MANIFEST, "state.bin"]
    folder = Folder(saved, False)
    for name in names:
        _ = folder[name]
    assert [folder.stamp(name) for name in names] == [stamp_of(os.stat(saved / name)) for name in names]
    folder.close()
    closed, close = [], saved_folder.close_folder
    monkeypatch.setattr(saved_folder, "close_folder", lambda handle: closed.append(handle) or close(handle))
    monkeypatch.setattr(saved_folder, "is_closed", lambda status: False)
    with pytest.raises(FormatError, match="may have been written by others"):
        Folder(saved, False)
    assert len(closed) == 1
    Folder(saved, True).close()
