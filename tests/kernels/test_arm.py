"""Kernels for AArch64: every row's kernels become object code; an emulator sums products of bytes."""

import shutil
import subprocess

import numpy as np
import pytest
from llvmlite import ir

from cgraph.ir.traverse import post_order
from cgraph.kernels.isa.arm import ARCHITECTURE
from cgraph.kernels.isa.records import Target
from cgraph.kernels.kernel import Kernel, Pointer, View
from cgraph.kernels.llvm.build import KERNEL_TYPE, Builder
from cgraph.kernels.llvm.bytes import dots
from cgraph.kernels.llvm.compile import KernelText, compile_kernel, link_and_optimise
from cgraph.kernels.llvm.values import Ptr
from cgraph.kernels.objects import is_for
from cgraph.kernels.target import code_generation, target_machine
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
    module = ir.Module("dots")
    module.triple = target_machine(target).triple
    k = Builder(module, ir.Function(module, KERNEL_TYPE, "f"), Kernel("conv8.tile", ()), target)
    words = Ptr(k, k.function.args[0], "i4")
    sums, groups = words.load(lanes=4), (words + 4).load(lanes=4)
    weights = Ptr(k, (words + 8).v, "i1").load(lanes=16)
    (total,) = dots(k, [sums], [groups], [weights])
    words.store(total)
    k.finish()
    machine = target_machine(target)
    return machine.emit_object(link_and_optimise("f", KernelText(str(module), {}), machine))


@every_target
def test_products_of_bytes_have_the_sums_of_int32(target, tmp_path):
    code = object_of_dots(target)
    assert is_for(code, code_generation(target).triple)
    if not (shutil.which(COMPILER) and shutil.which(EMULATOR)):
        pytest.skip(f"there is no {COMPILER} or {EMULATOR}. Install gcc-aarch64-linux-gnu and qemu-user")
    (tmp_path / "f.o").write_bytes(code)
    (tmp_path / "main.c").write_text(MAIN)
    command = [COMPILER, "-O1", "-static", "main.c", "f.o", "-o", "dots"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    rng = np.random.default_rng(0)
    extremes = (np.full(16, 255, "u1"), np.full(16, -128, "i1")), (np.full(16, 128, "u1"), np.full(16, 127, "i1"))
    drawn = [(rng.integers(0, 256, 16).astype("u1"), rng.integers(-128, 128, 16).astype("i1")) for _ in range(3)]
    for x, w in (*extremes, *drawn):
        sums = rng.integers(-(2**31), 2**31, 4).astype("i4")
        run = [EMULATOR, "-cpu", "max", tmp_path / "dots"]
        given = sums.tobytes() + x.tobytes() + w.tobytes()
        result = subprocess.run(run, input=given, check=True, capture_output=True).stdout
        want = sums + (x.astype("i4") * w).reshape(4, 4).sum(1, dtype="i4")
        np.testing.assert_array_equal(np.frombuffer(result, "i4"), want)
