"""Kernels compiled on several threads: the same object code, each kept once, and errors end all of them."""

import threading

import pytest

from cgraph.errors import NoKernelError
from cgraph.kernels import store as store_module
from cgraph.kernels.cache import cache_folder
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.llvm import side_by_side
from cgraph.kernels.llvm.compile import compile_kernel
from cgraph.kernels.llvm.side_by_side import OwnLlvm, compile_side_by_side, end
from cgraph.kernels.store import KernelStore
from cgraph.kernels.target import host_target
from tests.support.patience import PATIENCE

HOST = host_target()
KERNELS = {f"k{i}": Kernel("move.fills", (4, False)) for i in range(3)}
KERNELS |= {f"k{i}": Kernel("blocked_copy.fill_halo", ("f4", i)) for i in (4, 8)}
KERNELS |= {f"g{i}": Kernel("gemm.tile", ("f4", i, 2, False, "f4", 0)) for i in (2, 4)}


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_threads_gives_the_same_code(threads):
    codes, names = {}, set()

    def keep(symbol, code, seconds):
        assert symbol not in codes and seconds > 0
        codes[symbol] = code
        names.add(threading.current_thread().name)

    compile_side_by_side(KERNELS, HOST, threads, keep)
    assert codes == {symbol: compile_kernel(kernel, symbol, HOST)[0] for symbol, kernel in KERNELS.items()}
    assert len(names) <= threads and not [x for x in threading.enumerate() if x.name.startswith("cgraph-compile")]


@pytest.mark.parametrize("by_helper", [False, True])
def test_an_error_of_any_thread_ends_all_and_is_raised(by_helper, monkeypatch):
    kept, first = [], threading.Barrier(2)

    def fails(kernel, symbol, target, own):
        if symbol in ("k0", "k1"):
            first.wait(60)
        is_helper = threading.current_thread() is not threading.main_thread()
        if is_helper is by_helper:
            raise NoKernelError("no such kernel")
        return b"code", 0.0

    monkeypatch.setattr(side_by_side, "compile_kernel", fails)
    with pytest.raises(NoKernelError, match="no such kernel"):
        compile_side_by_side(KERNELS, HOST, 2, lambda *args: kept.append(args))
    assert not [x for x in threading.enumerate() if x.name.startswith("cgraph-compile")]


def test_after_an_error_no_thread_begins_another_kernel(monkeypatch):
    """The other thread is still at work when the helper fails and ends."""
    begun, first = [], threading.Barrier(2)

    def fails(kernel, symbol, target, own):
        begun.append(symbol)
        first.wait(PATIENCE)
        if threading.current_thread() is not threading.main_thread():
            raise NoKernelError("no such kernel")
        for helper in threading.enumerate():
            if helper.name.startswith("cgraph-compile"):
                helper.join(PATIENCE)
        return b"code", 0.0

    monkeypatch.setattr(side_by_side, "compile_kernel", fails)
    with pytest.raises(NoKernelError, match="no such kernel"):
        compile_side_by_side(KERNELS, HOST, 2, lambda *_: None)
    assert sorted(begun) == sorted(list(KERNELS)[:2])


def test_a_system_without_more_threads_compiles_on_one(monkeypatch):
    def refused(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(side_by_side.Thread, "start", refused)
    kept = []
    compile_side_by_side(KERNELS, HOST, 3, lambda symbol, *_: kept.append(symbol))
    assert kept == list(KERNELS)


def test_an_interrupt_between_two_starts_ends_the_threads_that_run(monkeypatch):
    original = threading.Thread.start

    def start(thread):
        if thread.name == "cgraph-compile-2":
            raise KeyboardInterrupt
        original(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    codes = {}
    with pytest.raises(KeyboardInterrupt):
        compile_side_by_side(KERNELS, HOST, 4, lambda symbol, code, seconds: codes.update({symbol: code}))
    assert len(codes) < len(KERNELS)
    assert not [x for x in threading.enumerate() if x.name.startswith("cgraph-compile")]


def test_what_a_signal_raises_while_threads_end_is_kept_until_they_have_ended():
    class Helper:
        turns = 2

        def is_alive(self):
            return self.turns > 0

        def join(self):
            self.turns -= 1
            if self.turns:
                raise KeyboardInterrupt

    errors = []
    end(Helper(), errors)
    assert [type(error) for error in errors] == [KeyboardInterrupt]


def test_a_thread_generates_code_with_a_context_and_machines_of_its_own():
    own = OwnLlvm()
    module = side_by_side.llvm.parse_assembly("define void @f() {\n  ret void\n}", own.context)
    assert own.emit(own.machine(HOST), module).startswith(b"\x7fELF") and own.machine(HOST) is own.machine(HOST)


@pytest.mark.parametrize(("processors", "count", "threads"), [(1, 7, 0), (2, 5, 0), (2, 6, 2), (8, 7, 2), (3, 9, 3)])
def test_many_missing_kernels_are_compiled_on_as_many_threads_as_are_worth_it(
    processors, count, threads, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(store_module, "allowed_processors", lambda: processors)
    used = []
    own = side_by_side.compile_side_by_side

    def compile_all(kernels, target, threads, keep):
        used.append(threads)
        own(kernels, target, threads, keep)

    monkeypatch.setattr(side_by_side, "compile_side_by_side", compile_all)
    store = KernelStore(cache_folder())
    kernels = [Kernel("blocked_copy.fill_halo", ("f4", i)) for i in range(1, count + 1)]
    assert all(store.load(kernels, HOST).values()) and store.misses == count and store.compile_seconds > 0
    assert used == ([threads] if threads else [])
    again = KernelStore(cache_folder())
    assert all(again.load(kernels, HOST).values()) and (again.hits, again.misses) == (count, 0)
