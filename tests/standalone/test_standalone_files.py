"""The files of an export: which there are, what the manifest says, and a hash of the code."""

import json
from hashlib import sha256

import pytest

from cgraph.kernels.machines import machine_named
from cgraph.standalone.files import digest_of, files_of
from cgraph.standalone.settings import settings_of
from tests.support.exports import counter

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
    manifest = json.loads(result.contents["manifest.json"])
    assert [x["name"] for x in manifest["inputs"]] == ["x", "at"]
    assert manifest["inputs"][0] == {
        "name": "x", "type": "float", "count": 300, "dtype": "float32", "shape": [300], "bytes": 1200,
    }  # fmt: skip
    assert [x["name"] for x in manifest["state"]] == ["mean"] and "runs" not in manifest
    sizes, raw = manifest["bytes"], result.contents["m.o"]
    assert (sizes["state"], sizes["stack"], sizes["object"]) == (1200, result.stack_nbytes, len(raw))
    assert sizes["memory"] >= sizes["arena"] + 1200 and manifest["sum"] == sha256(raw).hexdigest()
    assert manifest["externals"] == list(result.externals) and len(manifest["errors"]) == 1


def test_the_hash_is_of_calls_and_constants():
    one, same, other = counter(), counter(), counter(keeps_start=True)
    assert digest_of([one]) == digest_of([same]) != digest_of([other])
