"""The store of kernels: kept on disk by the user alone, checked when read, shared by processes."""

import ctypes
import os
import platform
import pwd
import queue
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cgraph.kernels import cache
from cgraph.kernels import store as store_module
from cgraph.kernels.cache import DAY, MAGIC, PRUNED, cache_folder, checksum
from cgraph.kernels.code_image import UnknownCode, place_image
from cgraph.kernels.expression import Trace
from cgraph.kernels.kernel import Kernel, Pointer, contiguous
from cgraph.kernels.llvm import compile as compile_module
from cgraph.kernels.pointwise.calls import pointwise_calls
from cgraph.kernels.store import KernelStore, emitter_hash, source_of, symbol_of
from cgraph.kernels.target import host_target
from tests.support.patience import PATIENCE

KERNEL, HOST = Kernel("blocked_copy.fill_halo", ("f4", 4)), host_target()
NAME = f"{symbol_of(KERNEL, HOST)}.o"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return cache_folder()


def file_of(folder):
    return folder.path / NAME


def names_in(folder):
    return {path.name for path in folder.path.iterdir()}


def test_the_folder_is_the_users_alone(folder):
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700


def test_a_folder_that_others_may_read_is_closed(folder):
    folder.path.chmod(0o755)
    assert stat.S_IMODE(cache_folder().path.stat().st_mode) == 0o700


def test_a_new_folder_is_never_open_to_others(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "fchmod", lambda *_: pytest.fail("it was open"))
    before = os.umask(0o022)
    try:
        assert stat.S_IMODE(cache_folder().path.stat().st_mode) == 0o700
    finally:
        os.umask(before)


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
SOMEBODY = 12345


@as_root
@pytest.mark.parametrize("above", range(3))
def test_a_folder_of_somebody_else_is_not_used(folder, above):
    """The folder itself, or one that it lies in."""
    os.chown([folder.path, *folder.path.parents][above], SOMEBODY, SOMEBODY)
    assert cache_folder() is None


@pytest.mark.parametrize(("mode", "used"), [(0o777, False), (0o770, False), (0o755, True), (0o1777, True)])
def test_a_folder_in_one_that_others_can_change_is_not_used_unless_that_is_sticky(folder, mode, used):
    folder.path.parent.chmod(mode)
    assert (cache_folder() is not None) is used


def given_away(path):
    os.chown(path, SOMEBODY, SOMEBODY)


def linked(path):
    os.link(path, path.with_name("other"))


def moved_behind_a_link(path):
    path.rename(path.with_name("other"))
    path.symlink_to("other")


def replaced_by_a_pipe(path):
    path.unlink()
    os.mkfifo(path)


def replaced_by_a_folder(path):
    path.unlink()
    path.mkdir()


def in_the_place_of_another(path):
    folder = cache_folder()
    folder.write("other", folder.read(path.name))
    path.with_name("other").replace(path)


CHANGES = [
    pytest.param(given_away, marks=as_root),
    lambda path: path.chmod(0o620),
    lambda path: path.chmod(0o602),
    linked,
    moved_behind_a_link,
    replaced_by_a_pipe,
    replaced_by_a_folder,
    in_the_place_of_another,
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_others_may_have_written_is_not_run(folder, change):
    folder.write("entry", b"code")
    assert folder.read("entry") == b"code"
    change(folder.path / "entry")
    assert folder.read("entry") is None


@pytest.mark.parametrize("code", [b"", b"\x7fELF\x02\x01\x01" + bytes(20), b"\x7fELF\x02\x01\x01" + bytes(57), "half"])
def test_a_whole_file_that_holds_no_kernel_is_a_miss(folder, code):
    KernelStore(folder).address(KERNEL, HOST)
    good = folder.read(NAME)
    folder.write(NAME, good[: len(good) // 2] if code == "half" else code)
    again = KernelStore(folder)
    assert again.address(KERNEL, HOST) and again.misses == 1 and folder.read(NAME) == good


def test_a_checksum_is_over_the_name_too():
    assert checksum("a", b"code") != checksum("b", b"code")


def test_a_file_that_cannot_be_written_leaves_nothing_behind(folder, monkeypatch):
    def full(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full)
    folder.write("a", b"code")
    assert not names_in(folder)


def test_an_interrupt_while_writing_is_heard_and_leaves_nothing_behind(folder, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        folder.write("a", b"code")
    assert not names_in(folder)


def test_a_file_is_whole_before_it_has_its_name(folder, monkeypatch):
    replace, seen = os.replace, []

    def looked_at(old, new, **folders):
        seen.append(((folder.path / old).read_bytes(), (folder.path / new).exists()))
        replace(old, new, **folders)

    monkeypatch.setattr(os, "replace", looked_at)
    folder.write("a", b"code")
    assert seen == [(MAGIC + checksum("a", b"code") + b"code", False)]


@pytest.mark.parametrize("given", ["", "relative/folder", "."])
def test_a_relative_cache_folder_does_not_count(monkeypatch, tmp_path, given):
    monkeypatch.setenv("XDG_CACHE_HOME", given)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert cache_folder().path == tmp_path / ".cache" / "cgraph" / "kernels"


def test_a_user_without_a_home_has_no_cache(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)

    def nobody(uid):
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert cache_folder() is None


def test_links_that_lead_to_one_another_are_no_folder(monkeypatch, tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a"))
    assert cache_folder() is None


@pytest.fixture
def hash_anew():
    """The hash of an emitter whose files are read again."""

    def hashed(module):
        source_of.cache_clear()
        return emitter_hash.__wrapped__(module)

    yield hashed
    source_of.cache_clear()


def test_a_change_of_a_helper_that_an_emitter_imports_changes_the_key(monkeypatch, hash_anew):
    """Every file that the text of `pointwise` imports, in turn, is part of its hash."""
    read, seen = store_module.content, []

    def counted(path):
        seen.append(path)
        return read(path)

    monkeypatch.setattr(store_module, "content", counted)
    before = hash_anew("pointwise")
    files = [Path(path) for path in dict.fromkeys(seen)]
    assert {"pointwise", "walk", "llvm"} <= {x.parent.name for x in files}
    assert {"emit.py", "signature.py"} <= {x.name for x in files if x.parent.name == "pointwise"}
    for helper in files:
        more = str(helper)
        monkeypatch.setattr(store_module, "content", lambda p, h=more: read(p) + (b"# more" if p == h else b""))
        assert hash_anew("pointwise") != before, helper


def test_a_link_in_place_of_the_folder_is_not_used(folder, tmp_path):
    folder.path.rmdir()
    folder.path.symlink_to(tmp_path)
    assert cache_folder() is None


def test_a_second_store_loads_what_the_first_compiled(folder):
    first, second = KernelStore(folder), KernelStore(folder)
    assert first.address(KERNEL, HOST) and (first.hits, first.misses) == (0, 1)
    assert second.address(KERNEL, HOST) and (second.hits, second.misses) == (1, 0)


@pytest.mark.parametrize("damage", ["cut", "byte", "foreign", "empty"])
def test_a_damaged_file_is_ignored_and_written_anew(folder, damage):
    KernelStore(folder).address(KERNEL, HOST)
    path = file_of(folder)
    raw = bytearray(path.read_bytes())
    good = bytes(raw)
    if damage == "cut":
        raw = raw[: len(raw) // 2]
    if damage == "byte":
        raw[len(raw) // 2] ^= 1
    if damage == "foreign":
        raw = bytearray(b"\x7fELF" + bytes(100))
    if damage == "empty":
        raw = bytearray()
    path.write_bytes(raw)
    again = KernelStore(folder)
    assert again.address(KERNEL, HOST) and again.misses == 1
    assert path.read_bytes() == good


def test_a_folder_that_is_gone_costs_the_cache_only(folder):
    folder.path.rmdir()
    store = KernelStore(folder)
    assert store.address(KERNEL, HOST) and store.misses == 1 and not folder.path.exists()


def test_no_folder_at_all_compiles():
    assert KernelStore(None).address(KERNEL, HOST)


def test_the_key_holds_every_text_that_shapes_the_code():
    assert emitter_hash("pointwise") != emitter_hash("reduce")


def test_a_kernel_has_another_name_when_the_text_of_its_emitter_changes(monkeypatch):
    before = symbol_of(KERNEL, HOST)
    for changed in ("pointwise", "blocked_copy"):
        monkeypatch.setattr(store_module, "emitter_hash", lambda x, y=changed: "new" if x == y else emitter_hash(x))
        assert (symbol_of(KERNEL, HOST) != before) is (changed == "blocked_copy")


def test_two_processes_may_compile_at_once(tmp_path):
    code = (
        "import cgraph as cg, numpy as np; x = cg.Var((50,)).assign(np.ones(50, 'f4')); print(cg.tanh(x * 3).eval()[0])"
    )
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    runs = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert len({run.communicate(timeout=PATIENCE)[0] for run in runs}) == 1
    assert all(run.returncode == 0 for run in runs)


def test_a_process_that_compiles_nothing_loads_no_llvm(tmp_path):
    code = (
        "import sys, cgraph as cg; cg.Const([0.5, 1.5]).eval(); (cg.tanh(cg.Var((50,)).assign([0.5] * 50)) * 3).eval()"
    )
    code += "; print('llvmlite.binding' in sys.modules)"
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, env=environment, capture_output=True, text=True, check=True) for _ in range(2)]
    own = sys.platform == "linux" and platform.machine() == "x86_64"
    assert [run.stdout.strip() for run in runs] == ["True", str(not own)]


def refuse(objects):
    raise UnknownCode("by the test")


@pytest.mark.parametrize("place", [place_image, refuse])
def test_the_code_runs_whoever_places_it(place, monkeypatch):
    monkeypatch.setattr(store_module, "place_image", place)
    m = Trace()
    program = m.program(m.load(0, "f4") + m.load(1, "f4"))
    arrays = [np.zeros(9, "f4"), np.arange(9, dtype="f4"), np.ones(9, "f4")]
    (call,) = pointwise_calls(host_target(), program, *(contiguous(Pointer(a), (9,), "f4") for a in arrays))
    words = [a.base.ctypes.data + a.offset if isinstance(a, Pointer) else a for a in call.args]
    args = np.array(words, np.int64)
    store = KernelStore(None)  # machine code lives as long as its store
    address = store.address(call.kernel, HOST)
    ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(address)(args.ctypes.data, 0, call.tasks)
    np.testing.assert_array_equal(arrays[0], arrays[1] + 1)


def test_the_code_that_llvm_places_is_kept_by_one_engine_for_each_target(monkeypatch):
    """An engine that went would take the code of earlier kernels with it."""
    monkeypatch.setattr(store_module, "place_image", refuse)
    store = KernelStore(None)
    first = store.address(KERNEL, HOST)
    engine = store._engine(host_target())
    second = store.address(Kernel("blocked_copy.fill_halo", ("f8", 4)), HOST)
    assert store._engine(host_target()) is engine
    assert engine.get_function_address(symbol_of(KERNEL, HOST)) == first != second


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="no fork here")
def test_a_fork_lets_nobody_compile_meanwhile(monkeypatch):
    hooks = {}
    monkeypatch.setattr(os, "register_at_fork", lambda **given: hooks.update(given))
    monkeypatch.setattr(store_module, "cache_folder", lambda: None)
    shared, events = store_module.store.__wrapped__(), queue.Queue()
    add, wait = shared._add, store_module.Ticket.wait
    monkeypatch.setattr(shared, "_add", lambda *given: (events.put("compiles"), add(*given)))
    monkeypatch.setattr(store_module.Ticket, "wait", lambda turn: (events.put("waits"), wait(turn)))
    hooks["before"]()
    with ThreadPoolExecutor(1) as pool:
        address = pool.submit(shared.address, KERNEL, HOST)
        try:
            assert [events.get(timeout=PATIENCE) for _ in range(3)] == ["waits"] * 3
        finally:
            hooks["after_in_parent"]()
        assert address.result()
    assert "compiles" in events.queue
    assert hooks["after_in_child"] == hooks["after_in_parent"]


def test_the_seconds_of_all_that_is_compiled_are_counted(monkeypatch):
    code = compile_module.compile_kernel(KERNEL, symbol_of(KERNEL, HOST), HOST)[0]
    monkeypatch.setattr(compile_module, "compile_kernel", lambda *given: (code, 0.25))
    store = KernelStore(None)
    store.image([KERNEL], HOST)
    store.image([KERNEL], HOST)
    assert (store.misses, store.compile_seconds) == (2, 0.5)


def aged(folder, days):
    """Files of 100 bytes by name, which were last used so many days ago."""
    for name, age in days.items():
        (folder.path / name).write_bytes(bytes(100))
        os.utime(folder.path / name, (time.time() - age * DAY,) * 2)


def test_what_is_long_unused_is_removed_then_what_is_too_much(folder):
    aged(folder, {"a": 100, "b": 5, "c": 3, "d": 0})
    folder.prune()
    assert names_in(folder) == {"b", "c", "d"}
    folder.prune(largest=250)
    assert names_in(folder) == {"c", "d"}


def test_files_are_removed_after_90_days_and_only_beyond_the_bytes_that_are_allowed(folder):
    aged(folder, {"a": 90.5, "b": 89.5, "c": 1})
    folder.prune()
    assert names_in(folder) == {"b", "c"}
    folder.prune(largest=199)
    assert names_in(folder) == {"c"}


def test_a_folder_holds_128_mebibytes(folder):
    aged(folder, {"new": 0, "older": 1, "old": 2})
    os.truncate(folder.path / "older", (128 << 20) - 100)  # no bytes on the disk
    for name, age in {"older": 1, "new": 0}.items():
        os.utime(folder.path / name, (time.time() - age * DAY,) * 2)
    folder.prune()
    assert names_in(folder) == {"new", "older"}
    os.truncate(folder.path / "new", 101)
    folder.prune()
    assert names_in(folder) == {"new"}


def test_what_a_killed_writer_left_goes_after_a_day(folder):
    aged(folder, {"a": 2, "b.part": 2, "c.part": 0.5})
    folder.prune()
    assert names_in(folder) == {"a", "c.part"}


def test_a_day_has_86400_seconds(folder):
    aged(folder, {"a.part": 1 + 0.1 / DAY, "b.part": 1 - 300 / DAY})
    folder.prune()
    assert names_in(folder) == {"b.part"}
    assert DAY == 24 * 60 * 60


def test_a_file_says_on_which_day_it_was_last_used(folder):
    """Not at what time: so it is written once a day at most."""
    KernelStore(folder).address(KERNEL, HOST)
    for hours, is_new in ((23, False), (25, True)):
        then = time.time() - hours * 3600
        os.utime(file_of(folder), (then, then))
        KernelStore(folder).address(KERNEL, HOST)
        assert (file_of(folder).stat().st_mtime > then + 60) is is_new


def test_a_process_that_compiles_nothing_removes_nothing(folder):
    KernelStore(folder).address(KERNEL, HOST)
    aged(folder, {"old": 100})
    store = KernelStore(folder)
    assert store.address(KERNEL, HOST) and not store.misses and (folder.path / "old").exists()


def test_what_is_used_stays(folder):
    KernelStore(folder).address(KERNEL, HOST)
    os.utime(file_of(folder), (time.time() - 100 * DAY,) * 2)
    aged(folder, {"old": 100})
    assert KernelStore(folder).address(KERNEL, HOST)
    folder.prune()
    assert file_of(folder).exists() and not (folder.path / "old").exists()


def test_a_process_that_compiles_removes_what_is_long_unused(folder):
    aged(folder, {"old": 100, "new": 1})
    KernelStore(folder).address(KERNEL, HOST)
    assert (folder.path / "new").exists() and not (folder.path / "old").exists()


def test_files_are_removed_at_most_once_an_hour(folder):
    """Listing a large folder takes a third of a second, which each process that compiles would spend."""
    KernelStore(folder).address(KERNEL, HOST)
    for hours, is_removed in ((0.9, False), (1.1, True), (-0.9, False), (-1.1, True)):
        aged(folder, {"old": 100})
        then = time.time() - hours * 3600
        os.utime(folder.path / PRUNED, (then, then))
        file_of(folder).unlink()
        KernelStore(folder).address(KERNEL, HOST)
        assert (folder.path / "old").exists() is not is_removed, hours


def test_removing_while_others_compile_costs_nobody_a_result(folder):
    stores = [KernelStore(folder) for _ in range(4)]
    kernels = [Kernel("gemm.pack.any_stride", ("f4", width)) for width in range(1, 7)]
    are_made, rounds = threading.Event(), []
    with ThreadPoolExecutor(5) as pool:

        def remove():
            while not are_made.is_set():
                folder.prune(largest=0)
                rounds.append(len(rounds))

        remover = pool.submit(remove)
        try:
            results = list(pool.map(lambda store: store.load(kernels, HOST), stores))
        finally:
            are_made.set()
        remover.result()
    assert all(all(addresses.values()) and len(addresses) == len(kernels) for addresses in results)
    assert rounds


def test_a_missing_folder_is_not_pruned(folder):
    folder.path.rmdir()
    folder.prune()
    assert not folder.path.exists()


def test_kernels_that_are_known_are_made_once():
    store = KernelStore(None)
    other = Kernel("blocked_copy.fill_halo", ("f8", 4))
    store.load([KERNEL], HOST)
    store.load([KERNEL, other], HOST)
    store.load([KERNEL, other], HOST)
    assert store.misses == 2


@pytest.mark.parametrize("seconds", [-1, 0, 1])
def test_ages_are_compared_with_their_limits_to_the_second(folder, seconds, monkeypatch):
    """A file of exactly a day is not written anew, one of exactly 90 days stays; after an hour files are removed."""
    now = int(time.time())
    monkeypatch.setattr(cache, "time", SimpleNamespace(time=lambda: now))
    folder.write("used", b"code")
    for name, age in (("used", DAY), ("old", 90 * DAY), ("x.part", DAY)):
        if name != "used":
            (folder.path / name).write_bytes(b"")
        os.utime(folder.path / name, (now - age - seconds,) * 2)
    assert folder.read("used") == b"code"
    assert ((folder.path / "used").stat().st_mtime != now - DAY - seconds) == (seconds > 0)
    folder.write(PRUNED, b"")
    os.utime(folder.path / PRUNED, (now - 3600 - seconds,) * 2)
    folder.prune_hourly()
    is_hour_over = seconds >= 0
    assert ((folder.path / PRUNED).stat().st_mtime != now - 3600 - seconds) == is_hour_over
    folder.prune()
    left = {name for name in ("old", "x.part") if (folder.path / name).exists()}
    assert left == (set() if seconds > 0 else {"old", "x.part"})
