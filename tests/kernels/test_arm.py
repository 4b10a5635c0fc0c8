"""Kernels for AArch64: every row's kernels become object code; an emulator sums products of bytes."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cgraph.ir.traverse import post_order
from cgraph.kernels import host as host_module
from cgraph.kernels.isa.arm import ARCHITECTURE
from cgraph.kernels.isa.records import Host, Target
from cgraph.kernels.kernel import Kernel, Pointer, View
from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.build import KERNEL_TYPE, Builder
from cgraph.kernels.llvm.bytes import dots
from cgraph.kernels.llvm.compile import KernelText, compile_kernel, link_and_optimise
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.objects import is_for
from cgraph.kernels.pairs.emit import add_pairs
from cgraph.kernels.target import code_generation, target_machine
from cgraph.record import replace
from tests.ops.cases import CASES
from tests.ops.test_cases import Drawn, nodes_of
from tests.support.ops import computing, own_views, work_of

every_target = pytest.mark.parametrize("target", ARCHITECTURE.targets, ids=lambda x: x.name)
COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
MAIN = """
#include <unistd.h>
void f(const void *, long, long);
_Alignas(64) static char bytes[48];
int main(void) { return read(0, bytes, 48) != 48 || (f(bytes, 0, 1), write(1, bytes, 16) != 16); }
"""
WITH_BF16 = replace(ARCHITECTURE.targets[-1], features=f"{ARCHITECTURE.targets[-1].features},+bf16", bf16="dot")
SOME = CASES[:: len(CASES) // 12]


def kernels_of(case, target: Target) -> set[Kernel]:
    """The kernels of a row's nodes, and of its gradients, on a target."""
    nodes, kernels = dict.fromkeys(post_order(nodes_of(Drawn(case), case.smooth))), set()
    for node in computing(nodes):
        work, out, xs = work_of(node, target), own_views(node), tuple(own_views(x) for x in node.operands)
        room = View(Pointer("arena"), (work.needs(out, xs),), (1,), "u1")
        kernels |= {call.kernel for call in work.placed(out, xs, room) if isinstance(call.kernel, Kernel)}
    return kernels


@pytest.mark.parametrize("cases", [SOME, pytest.param(CASES, marks=pytest.mark.slow)], ids=["some", "all"])
def test_the_kernels_of_rows_compile_to_object_code(cases):
    target = ARCHITECTURE.targets[-1]
    kernels = set().union(*(kernels_of(case, target) for case in cases))
    assert len(kernels) >= len(cases) // 4
    for kernel in kernels:
        code, _ = compile_kernel(kernel, "f", target)
        assert is_for(code, code_generation(target).triple), kernel


def object_of_dots(target: Target) -> bytes:
    """Object code of a function that adds the products of four groups of bytes: 4 sums, 4 groups, 4 times 4 weights."""

    def total(k: Builder, words: Ptr) -> Val:
        weights = Ptr(k, (words + 8).v, "i1").load(lanes=16)
        return dots(k, [words.load(lanes=4)], [(words + 4).load(lanes=4)], [weights])[0]

    return object_of(target, "conv8.tile", "i4", total)


def object_of(target: Target, family: str, dtype: str, total: Callable[[Builder, Ptr], Val]) -> bytes:
    """Object code of a function that writes a total in place of the first 4 words at its argument."""
    module = ir.Module("dots")
    module.triple = target_machine(target).triple
    k = Builder(module, ir.Function(module, KERNEL_TYPE, "f"), Kernel(family, ()), target)
    words = Ptr(k, k.function.args[0], dtype)
    words.store(total(k, words))
    k.finish()
    machine = target_machine(target)
    return machine.emit_object(link_and_optimise("f", KernelText(str(module), {}), machine))


def program_of(code: bytes, folder: Path) -> list[str | Path]:
    """The command that runs a function on 48 bytes in an emulator and writes the first 16."""
    if not (shutil.which(COMPILER) and shutil.which(EMULATOR)):
        pytest.skip(f"there is no {COMPILER} or {EMULATOR}. Install gcc-aarch64-linux-gnu and qemu-user")
    (folder / "f.o").write_bytes(code)
    (folder / "main.c").write_text(MAIN)
    command = [COMPILER, "-O1", "-static", "main.c", "f.o", "-o", "dots"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return [EMULATOR, "-cpu", "max", folder / "dots"]


@every_target
def test_products_of_bytes_have_the_sums_of_int32(target, tmp_path):
    code = object_of_dots(target)
    assert is_for(code, code_generation(target).triple)
    run = program_of(code, tmp_path)
    rng = np.random.default_rng(0)
    extremes = (np.full(16, 255, "u1"), np.full(16, -128, "i1")), (np.full(16, 128, "u1"), np.full(16, 127, "i1"))
    drawn = [(rng.integers(0, 256, 16).astype("u1"), rng.integers(-128, 128, 16).astype("i1")) for _ in range(3)]
    for x, w in (*extremes, *drawn):
        sums = rng.integers(-(2**31), 2**31, 4).astype("i4")
        given = sums.tobytes() + x.tobytes() + w.tobytes()
        result = subprocess.run(run, input=given, check=True, capture_output=True).stdout
        want = sums + (x.astype("i4") * w).reshape(4, 4).sum(1, dtype="i4")
        np.testing.assert_array_equal(np.frombuffer(result, "i4"), want)


def bfloat16_bits(x: np.ndarray) -> bytes:
    """The upper halves of float32 numbers that bfloat16 holds."""
    bits = x.astype("f4").view("u4")
    assert not (bits & 0xFFFF).any()
    return (bits >> 16).astype("u2").tobytes()


@pytest.mark.parametrize("target", [ARCHITECTURE.targets[0], WITH_BF16], ids=["neon", "bf16"])
def test_products_of_pairs_are_added_to_float32(target, tmp_path):
    """Small integers, whose sums are exact in any order and rounding: one pair for all lanes, and a pair per lane."""

    def total(k: Builder, words: Ptr) -> Val:
        pairs = Ptr(k, words.v, "i4")
        return add_pairs(k, [words.load(lanes=4)], [(pairs + 4).load()], [(pairs + 8).load(lanes=4)])[0]

    run, rng = program_of(object_of(target, "pairs.tile", "f4", total), tmp_path), np.random.default_rng(0)
    sums, x, w = (rng.integers(-99, 100, n).astype("f4") for n in (4, 8, 8))
    given = sums.tobytes() + bfloat16_bits(x) + bfloat16_bits(w)
    result = subprocess.run(run, input=given, check=True, capture_output=True).stdout
    np.testing.assert_array_equal(np.frombuffer(result, "f4"), sums + w.reshape(4, 2) @ x[:2])


@pytest.mark.parametrize(
    ("features", "name", "dot", "bf16"),
    [
        ("+neon", "neon", "plain", ""),
        ("+neon,+dotprod", "neon-dot", "signed", ""),
        ("+neon,+dotprod,+i8mm", "neon-i8mm", "mixed", ""),
        ("+neon,+i8mm", "neon", "plain", ""),
        ("+neon,+dotprod,+i8mm,+bf16", "neon-i8mm", "mixed", "dot"),
    ],
)
def test_the_target_of_a_host_has_its_capabilities(features, name, dot, bf16):
    target = ARCHITECTURE.detect(Host("generic", features, "aarch64-unknown-linux-gnu", "", ""))
    assert (target.name, target.dot, target.bf16, "+bf16" in target.features) == (name, dot, bf16, bf16 == "dot")


def test_features_that_llvm_does_not_detect_are_those_that_linux_reports(monkeypatch):
    """LLVM 20 detects neither of them on Linux."""
    monkeypatch.setattr(host_module, "host_architecture", lambda: ARCHITECTURE)
    monkeypatch.setattr(host_module, "host_features", lambda: frozenset({"asimd", "asimddp", "i8mm", "flagm"}))
    assert host_module.detected_features() == ["+dotprod", "+i8mm"]
    assert {"+dotprod", "+i8mm"} <= set(host_module.detect_host().features.split(","))
    monkeypatch.setattr(host_module, "cpuinfo", lambda: dict.fromkeys(ARCHITECTURE.cpuinfo, "1"))
    before = host_module.host_key()
    monkeypatch.setattr(host_module, "host_features", lambda: frozenset({"asimd"}))
    assert before and host_module.host_key() != before
