"""What native code calls on each operating system, and the clock of Windows."""

import ctypes
from types import SimpleNamespace

import llvmlite.binding as llvm
import pytest

from cgraph.engine.cpu.threads import WORDS
from cgraph.kernels import store as store_module
from cgraph.kernels.code_image import UnknownCode
from cgraph.kernels.host import host
from cgraph.kernels.interpret.atomics import now
from cgraph.kernels.isa.records import CodeGeneration
from cgraph.kernels.isa.systems import errno_function, has_elf, is_windows
from cgraph.kernels.isa.x86 import ARCHITECTURE
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.llvm import compile as compile_module
from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.build import INDEX, Builder
from cgraph.kernels.llvm.compile import emit_kernel
from cgraph.kernels.objects import is_for
from cgraph.kernels.store import KernelStore
from cgraph.kernels.target import code_generation, host_target, new_target_machine
from cgraph.record import replace

WINDOWS, MACOS, LINUX = "x86_64-pc-windows-msvc", "arm64-apple-darwin", "aarch64-unknown-linux-gnu"
CALLED = {
    WINDOWS: {"QueryPerformanceCounter", "QueryPerformanceFrequency", "Sleep", "SwitchToThread"},
    MACOS: {"clock_gettime", "usleep", "sched_yield", "pread", "__error"},
    LINUX: {"clock_gettime", "syscall", "sched_yield", "pread", "__errno_location"},
}


@pytest.mark.parametrize("triple", CALLED)
def test_the_interpreter_calls_what_the_system_has(monkeypatch, triple):
    monkeypatch.setattr(compile_module, "target_machine", lambda _: SimpleNamespace(triple=triple))
    futex = 98 if triple == LINUX else 0
    called = set()
    for family in WORDS:
        module = llvm.parse_assembly(emit_kernel(Kernel(family, (1, futex)), "f", ARCHITECTURE.targets[0]).text)
        called |= {f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")}
    assert called == CALLED[triple]


@pytest.mark.parametrize("triple", [WINDOWS, "x86_64-apple-darwin"])
def test_the_interpreter_becomes_object_code_of_the_system(monkeypatch, triple):
    target = ARCHITECTURE.targets[0]
    machine = new_target_machine(target, CodeGeneration(triple, ""))
    monkeypatch.setattr(compile_module, "target_machine", lambda _: machine)
    code, _ = compile_module.compile_kernel(Kernel("interpret.lead", (1, 0)), "f", target)
    assert code[:2] == b"\x64\x86" if triple == WINDOWS else is_for(code, triple)  # COFF has the machine first


@pytest.mark.parametrize("ticks", [0, 1, 12_345_678_901_234])
@pytest.mark.parametrize("frequency", [10_000_000, 3_579_545])
def test_the_clock_of_windows_has_the_nanoseconds_of_its_ticks(ticks, frequency):
    """The functions of Windows are Python's here; the product of ticks and nanoseconds has more than 64 bits."""
    values = {"QueryPerformanceCounter": ticks, "QueryPerformanceFrequency": frequency}
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int64))

    def writer(value: int):
        def write(place) -> int:
            place[0] = value
            return 1

        return kind(write)

    functions = {name: writer(value) for name, value in values.items()}
    for name, function in functions.items():
        llvm.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)
    target = host_target()
    machine = new_target_machine(target, replace(code_generation(target), code_model="jitdefault"))
    module = ir.Module("clock")
    module.triple = WINDOWS
    k = Builder(module, ir.Function(module, ir.FunctionType(INDEX, []), "read"), Kernel("interpret.alone", ()), target)
    k.b.ret(now(k, 0).v)
    k.finish()
    text = str(module).replace(WINDOWS, machine.triple)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(engine.get_function_address("read"))() == ticks * 10**9 // frequency


def test_what_triples_say_about_systems():
    assert [is_windows(x) for x in CALLED] == [True, False, False]
    assert [has_elf(x) for x in CALLED] == [False, False, True]
    assert [errno_function(x) for x in (MACOS, LINUX)] == ["__error", "__errno_location"]


def test_code_that_only_llvm_links_is_not_saved(monkeypatch):
    monkeypatch.setattr(store_module, "host", lambda: replace(host(), triple=MACOS))
    with pytest.raises(UnknownCode, match="only LLVM links code for this system. Save the graph as ONNX"):
        KernelStore(None).image([Kernel("blocked_copy.fill_halo", ("f4", 4))], host_target())
