"""Tables of kernels that are built with the package: code is read back, damage is a miss, old names are never used."""

import json

import numpy as np
import pytest

from cgraph.kernels.build_tables import build_table, common_targets
from cgraph.kernels.cache import cache_folder
from cgraph.kernels.isa.x86 import ARCHITECTURE, AVX2, detect
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.objects import link_objects
from cgraph.kernels.prebuilt import table as tables
from cgraph.kernels.prebuilt.table import LENGTH, opened_table, path_of, write_table
from cgraph.kernels.store import KernelStore, prebuilt_name, symbol_of
from cgraph.kernels.target import host_target
from cgraph.record import replace

FILL, TAKE = Kernel("blocked_copy.fill_halo", ("f4", 8)), Kernel("blocked_copy.fill_halo", ("f4", 16))
CODE = {"first": b"code of the first", "other": bytes(range(256)) * 9, "none": b""}


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "tables" / "some.kernels"
    write_table(file, "LLVM 1", CODE)
    return file


def test_code_is_read_back_by_name(path):
    table = opened_table(path)
    assert table.version == "LLVM 1" and {name: table.read(name) for name in CODE} == CODE
    assert table.read("absent") is None
    assert [x.name for x in path.parent.iterdir()] == [path.name]


def test_a_file_in_its_place_changes_no_open_table(path):
    table = opened_table(path)
    write_table(path, "LLVM 2", {"first": b"other code"})
    assert table.read("first") == CODE["first"] and opened_table(path).read("first") == b"other code"


def test_every_damaged_file_is_a_miss_or_gives_the_same_code(path):
    raw = path.read_bytes()
    rng = np.random.default_rng(0)
    for end in (0, 1, LENGTH, LENGTH + 9, len(raw) - 1):
        assert_no_other_code(path, raw[:end])
    for _ in range(200):
        at, bit = rng.integers(len(raw)), rng.integers(8)
        assert_no_other_code(path, raw[:at] + bytes([raw[at] ^ (1 << bit)]) + raw[at + 1 :])


def assert_no_other_code(path, raw):
    path.write_bytes(raw)
    table = opened_table(path)
    if table is not None:
        found = {name: table.read(name) for name in table.places if isinstance(name, str)}
        assert all(code is None or code in CODE.values() for code in found.values())


@pytest.mark.parametrize(
    "index",
    ["[]", "{}", '{"version": "1"}', '{"version": "1", "kernels": []}', '{"version": "1", "kernels": {"a": 5}}', "["],
)
def test_an_index_of_another_form_is_no_table(path, index):
    path.write_bytes(len(index).to_bytes(LENGTH, "little") + index.encode())
    assert opened_table(path) is None


def test_no_file_is_no_table(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "FOLDER", tmp_path)
    assert tables.table_of.__wrapped__(host_target()) is None


def test_each_target_has_a_file_of_its_own():
    targets = common_targets()
    assert len({path_of(x) for x in targets}) == len(targets) > len(ARCHITECTURE.common)
    assert path_of(AVX2) != path_of(replace(AVX2, features=f"{AVX2.features},+other"))


@pytest.fixture
def built(tmp_path, monkeypatch):
    """A cache folder of its own, and the table of one kernel for this machine."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return opened_table(build_table(host_target(), [FILL], tmp_path / "host.kernels"))


def store_with(table):
    return KernelStore(cache_folder(), lambda target: table if target == host_target() else None)


def counts(store):
    return store.built, store.hits, store.misses


def test_a_kernel_of_the_table_is_not_compiled(built, monkeypatch):
    store = store_with(built)
    monkeypatch.setattr(KernelStore, "_compile", lambda *args: pytest.fail("the table has its code"))
    assert store.address(FILL, host_target()) and counts(store) == (1, 0, 0)
    assert not cache_folder().read(f"{symbol_of(FILL, host_target())}.o")


def test_other_kernels_are_compiled_and_cached(built):
    store = store_with(built)
    found = store.load([FILL, TAKE], host_target())
    assert all(found.values()) and counts(store) == (1, 0, 1)
    assert cache_folder().read(f"{symbol_of(TAKE, host_target())}.o")
    again = store_with(built)
    assert again.load([FILL, TAKE], host_target()) and counts(again) == (1, 1, 0) and again.loaded == 2
    assert store_with(built).load([TAKE], host_target()) and store_with(None).load([FILL], host_target())


def test_a_kernel_whose_emitter_has_changed_is_compiled(built, monkeypatch):
    monkeypatch.setattr("cgraph.kernels.store.emitter_hash", lambda module: "another")
    store = store_with(built)
    assert store.address(FILL, host_target()) and counts(store) == (0, 0, 1)


def test_the_table_of_another_target_is_not_read(built):
    store, other = store_with(built), replace(host_target(), tuning="")
    assert store.address(FILL, other) and counts(store) == (0, 0, 1)


def test_damaged_code_is_compiled_and_cached_under_a_name_with_the_version(built, monkeypatch):
    monkeypatch.setattr("cgraph.kernels.prebuilt.table.zlib.decompress", lambda raw: b"not an object file")
    store = store_with(built)
    assert store.address(FILL, host_target())
    assert cache_folder().read(f"{symbol_of(FILL, host_target())}.o")
    assert not cache_folder().read(f"{prebuilt_name(FILL, host_target())}.o")


def test_the_same_code_comes_from_the_table_and_from_the_compiler(built):
    """But for the name of the function, by which LLVM sorts the names in the file."""
    name, symbol = prebuilt_name(FILL, host_target()), symbol_of(FILL, host_target())
    store_with(None).address(FILL, host_target())
    images = [link_objects({name: built.read(name)}), link_objects({symbol: cache_folder().read(f"{symbol}.o")})]
    np.testing.assert_array_equal(images[0].code, images[1].code)
    assert [*images[0].symbols.values()] == [*images[1].symbols.values()] and images[0].outer == images[1].outer


def test_the_index_is_json(path):
    raw = path.read_bytes()
    index = json.loads(raw[LENGTH : LENGTH + int.from_bytes(raw[:LENGTH], "little")])
    assert set(index) == {"version", "kernels"} and set(index["kernels"]) == set(CODE)
    assert detect(ARCHITECTURE.common[0]) == AVX2


def test_a_build_that_is_interrupted_leaves_the_old_file_and_no_other(path, monkeypatch):
    def interrupt(*names):
        raise KeyboardInterrupt

    monkeypatch.setattr(tables.os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_table(path, "LLVM 2", {"first": b"other code"})
    assert opened_table(path).version == "LLVM 1" and list(path.parent.iterdir()) == [path]
