"""The files of an export: which there are, what the manifest says, and a hash of the code."""

import json
from hashlib import sha256
from types import SimpleNamespace

import pytest

from cgraph.kernels.machines import machine_named
from cgraph.record import replace
from cgraph.standalone.files import digest_of, files_of, manifest
from cgraph.standalone.settings import settings_of
from tests.support.exports import counter, facts

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
