"""Which tables a build writes: of this machine, of common processors; old ones are removed."""

import pytest

from cgraph.kernels import build_tables as builds
from cgraph.kernels.build_tables import build_tables, common_targets, own_targets
from cgraph.kernels.isa.architectures import architecture_of_machine
from cgraph.kernels.isa.records import Host
from cgraph.kernels.isa.x86 import ARCHITECTURE, AVX512_HOST, BEYOND, INTEL, LINUX, detect
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.llvm.compile import compile_kernel
from cgraph.kernels.prebuilt.kernel_list import listed
from cgraph.kernels.prebuilt.table import opened_table
from cgraph.kernels.store import prebuilt_name
from cgraph.kernels.target import host_target, on_tiles
from cgraph.record import replace

CODES = ("f4", "f8", "u1", "i4", "i8", "u2")
FILL = Kernel("blocked_copy.fill_halo", ("f4", 8))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder for tables, and lists of one kernel for AVX-512 and AVX2 alone."""
    known = builds.path_of
    monkeypatch.setattr(builds, "FOLDER", tmp_path)
    monkeypatch.setattr(builds, "path_of", lambda target: tmp_path / known(target).name)
    monkeypatch.setattr(builds, "listed", lambda target: [FILL] if target.name in ("avx2", "avx512") else [])
    return tmp_path


def test_a_build_writes_the_table_of_this_machine_and_removes_older_ones(folder):
    (folder / "older.kernels").write_bytes(b"")
    (folder / "other.txt").write_bytes(b"")
    paths = build_tables(is_for_all=False)
    assert set(folder.iterdir()) == {*paths, folder / "other.txt"}
    for path in paths:
        assert opened_table(path).places.keys() == {prebuilt_name(FILL, host_target())}


def test_a_target_without_a_list_has_no_table(folder, monkeypatch):
    monkeypatch.setattr(builds, "listed", lambda target: [])
    assert build_tables(is_for_all=False) == [] and not list(folder.iterdir())


def test_a_release_has_a_table_of_each_common_processor(folder):
    if architecture_of_machine(builds.host().triple) is not ARCHITECTURE:
        pytest.skip("common processors are listed for x86-64")
    paths = build_tables(is_for_all=True)
    assert len(set(paths)) == len(ARCHITECTURE.common) + 1  # one has tiles
    assert all(len(opened_table(path).places) == 1 for path in paths)


def test_a_processor_with_tiles_has_two_tables(monkeypatch):
    described = Host("", ",".join(f"+{x}" for x in (*AVX512_HOST, *BEYOND)), LINUX, "", "", INTEL)
    target = detect(described)
    monkeypatch.setattr(builds, "host_target", lambda: target)
    for state, targets in (
        ("", [target]),
        ("permitted", [target, on_tiles(target)]),
        ("refused", [target, on_tiles(target)]),
    ):
        monkeypatch.setattr(builds, "tiles_state", lambda state=state: state)
        assert own_targets() == targets


def test_common_targets_with_tiles_are_those_of_processors_that_have_them():
    for target in common_targets():
        assert not target.tiles or "+amx-tile" in target.features


@pytest.mark.slow
@pytest.mark.parametrize("place", range(len(ARCHITECTURE.common) + 1))
def test_a_kernel_of_each_family_compiles_for_each_common_processor(place):
    """LLVM ends the process if a kernel uses an instruction that its target lacks."""
    if architecture_of_machine(builds.host().triple) is not ARCHITECTURE:
        pytest.skip("common processors are listed for x86-64")
    target = common_targets()[place]
    kernels = {(kernel.family, *(x for x in kernel.params if x in CODES)): kernel for kernel in listed(target)}
    for kernel in kernels.values():
        assert compile_kernel(kernel, "symbol", target)[0], kernel


def test_every_kernel_of_a_list_is_in_the_table_and_every_old_table_is_removed(folder, monkeypatch):
    others = [Kernel("blocked_copy.fill_halo", ("f8", 4)), Kernel("plain.pad_rows", (4,))]
    monkeypatch.setattr(builds, "listed", lambda target: [FILL, *others] if target == host_target() else [])
    for name in ("a.kernels", "b.kernels", "c.kernels"):
        (folder / name).write_bytes(b"")
    (path,) = build_tables(is_for_all=False)
    assert set(folder.iterdir()) == {path}
    table = opened_table(path)
    assert table.places.keys() == {prebuilt_name(kernel, host_target()) for kernel in (FILL, *others)}
    codes = {table.read(prebuilt_name(kernel, host_target())) for kernel in (FILL, *others)}
    assert len(codes) == 3 and all(codes)


def test_an_architecture_without_a_way_to_tell_processors_has_no_common_targets(monkeypatch):
    own = architecture_of_machine(builds.host().triple)
    monkeypatch.setattr(builds, "architecture_of_machine", lambda _: replace(own, detect=None))
    assert common_targets() == []
