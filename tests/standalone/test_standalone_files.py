"""The files of an export: which there are, what the manifest says, and a hash of the code."""

import json
from hashlib import sha256
from types import SimpleNamespace

import pytest

import cgraph as cg
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.machines import machine_named
from cgraph.record import replace
from cgraph.standalone import files as export_files
from cgraph.standalone.elf import with_any_float_abi
from cgraph.standalone.files import digest_of, files_of, manifest
from cgraph.standalone.settings import settings_of
from cgraph.standalone.word_tables import stored_words, word_tables
from tests.standalone.recorded_texts import ONE
from tests.support.exports import counter, exported, facts

ALWAYS = {"m.h", "main.c", "manifest.json"}


def files(folder, machine="cortex-m7", **settings):
    how = settings_of(folder / "m", machine, **settings)
    return files_of([counter(machine=machine, keeps_start=how.keeps_start)], how, machine_named(machine).target)


@pytest.mark.parametrize(("machine", "settings", "others"), [
    ("cortex-m7", {}, {"m.o"}), ("cortex-m7", {"form": "c"}, {"m.o", "m.c"}), ("avx2-windows", {}, {"m.obj"}),
])  # fmt: skip
def test_an_export_has_these_files(machine, settings, others, tmp_path):
    assert set(files(tmp_path, machine, **settings).contents) == ALWAYS | others


def test_the_manifest_has_sizes_and_names(tmp_path):
    result = files(tmp_path, memory="caller")
    found = json.loads(result.contents["manifest.json"])
    assert [x["name"] for x in found["inputs"]] == ["x", "at"]
    assert found["inputs"][0] == {
        "name": "x", "type": "float", "count": 300, "dtype": "float32", "shape": [300], "bytes": 1200,
    }  # fmt: skip
    assert [x["name"] for x in found["state"]] == ["mean"] and "runs" not in found
    sizes, raw = found["bytes"], result.contents["m.o"]
    assert (sizes["state"], sizes["stack"], sizes["object"]) == (1200, result.stack_nbytes, len(raw))
    assert sizes["memory"] >= sizes["arena"] + 1200 and found["sum"] == sha256(raw).hexdigest()
    assert found["externals"] == list(result.externals) and len(found["errors"]) == 1


def test_the_hash_is_of_calls_and_constants():
    one, same, other = counter(), counter(), counter(keeps_start=True)
    assert digest_of([one]) == digest_of([same]) != digest_of([other])


@pytest.mark.parametrize("first", [0, 1])
def test_the_manifest_of_several_runs_has_the_errors_and_the_largest_arena_of_all(first, tmp_path):
    """Whichever run comes first: errors have one number in all runs."""
    program = counter()
    later = tuple(replace(row, label=row.label + 1) for row in program.rows)
    runs = [
        replace(program, suffix="_4"),
        replace(
            program, suffix="_9", rows=later, labels=("", *program.labels), arena_nbytes=program.arena_nbytes + 640
        ),
    ]
    errors = dict(sorted((runs[0].errors | runs[1].errors).items()))
    assert len(runs[0].errors) == len(runs[1].errors) == 1 and len(errors) == 2
    runs = [runs[first], runs[1 - first]]
    known = facts(stacks={x.run_name: 96 for x in runs})
    found = manifest(runs, SimpleNamespace(nbytes=99), known, b"")
    assert list(found["errors"].items()) == list(errors.items())
    assert found["bytes"]["arena"] == program.arena_nbytes + 640
    assert [x["bytes"]["arena"] for x in found["runs"]] == [x.arena_nbytes for x in runs]


ROW = ONE.rows[0]
CHANGES = {
    "a kernel": lambda x: replace(x, kernels=(*x.kernels[:1], Kernel("take.columns"))),
    "the kernel of a row": lambda x: replace(x, rows=(replace(ROW, kernel=1), *x.rows[1:])),
    "a word": lambda x: replace(x, rows=(replace(ROW, words=(*ROW.words[:-1], 9)), *x.rows[1:])),
    "the tasks of a row": lambda x: replace(x, rows=(replace(ROW, tasks=4), *x.rows[1:])),
    "the last row": lambda x: replace(x, rows=x.rows[:-1]),
    "the constants": lambda x: replace(x, constants=bytes(299) + b"\1"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_hash_tells_programs_apart_by_all_that_they_run_and_read(change):
    """Also a program that is not the first."""
    other = change(ONE)
    assert digest_of([ONE]) == digest_of([replace(ONE)]) != digest_of([other])
    if other.rows is not ONE.rows:
        assert digest_of([ONE, ONE]) != digest_of([ONE, other]) != digest_of([other, ONE])


def test_objects_of_arm_link_with_code_of_either_float_interface(tmp_path):
    raw = files(tmp_path).contents["m.o"]
    assert with_any_float_abi(raw) == raw, "no tag is left to replace"


def test_the_entry_as_c_copies_with_memcpy_and_its_stack_is_unknown(tmp_path):
    x = cg.Var((30,), name="x")
    how, target = settings_of(tmp_path / "m", "neon", form="c"), machine_named("neon").target
    result = files_of([exported([cg.cumsum(x, 0)], [x], machine="neon", names=["y"])], how, target)
    assert "memcpy" in result.externals and list(result.externals) == sorted(set(result.externals))
    assert result.stack_nbytes is None and json.loads(result.contents["manifest.json"])["bytes"]["stack"] is None


def test_tables_of_arguments_count_for_every_run(tmp_path):
    how, program = settings_of(tmp_path / "m", "cortex-m7", form="shared"), counter()
    target = machine_named("cortex-m7").target
    one, two = ([replace(program, suffix=f"_{i}") for i in range(n)] for n in (1, 2))
    tables = word_tables(one, 32)
    nbytes = sum(tables[row.kernel].width * len(stored_words(row, tables[row.kernel])) for row in program.rows)
    assert files_of(one, how, target).table_nbytes == nbytes > 0
    assert files_of(two, how, target).table_nbytes == 2 * nbytes


def test_a_linked_module_comes_with_its_loader_and_its_stack_is_unknown(tmp_path, monkeypatch):
    linked = []
    monkeypatch.setattr(export_files, "linked_module", lambda raw, programs: linked.append(raw) or b"module")
    result = files(tmp_path, "wasm32")
    assert set(result.contents) == ALWAYS | {"m.o", "m.wasm", "m.mjs"} and result.stack_nbytes is None
    assert result.contents["m.wasm"] == b"module" and linked == [result.contents["m.o"]]
    assert b"export async function load(source)" in result.contents["m.mjs"]
