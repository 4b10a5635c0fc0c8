"""No kernel touches a byte outside of an input: each lies between pages that nobody may read.

The runs are in a process of their own, since a wrong read ends it; its last line names the case.
"""

import ctypes
import mmap
import os
import subprocess
import sys
import zlib
from collections.abc import Callable

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Var
from cgraph.system.alignment import round_up
from tests.ops.cases import CASES
from tests.support.kernels import TARGETS

NO_ACCESS = 0  # PROT_NONE of Linux and macOS
POOLS = [(columns, stride, taps) for columns in (5, 33, 61, 130) for stride in (1, 2, 3, 4) for taps in (1, 3)]
PRODUCTS = [(m, k, n) for m in (1, 2, 3, 4, 5, 7, 12, 13, 23) for k in (1, 3, 8, 33) for n in (1, 7, 16, 40)]


def guarded(array: np.ndarray, at_end: bool) -> np.ndarray:
    """Return a copy that begins, or ends, at a page that raises a signal when it is touched."""
    page = mmap.PAGESIZE
    nbytes = round_up(max(array.nbytes, 1), page)
    memory = mmap.mmap(-1, nbytes + 2 * page)
    raw = np.frombuffer(memory, np.uint8)
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    for start in (0, page + nbytes):
        assert protect(raw.ctypes.data + start, page, NO_ACCESS) == 0
    first = page + (nbytes - array.nbytes if at_end else 0)
    copy = raw[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def in_fork(work: Callable[[], None]) -> int:
    """Return how a child of this process ends that does some work: 0, or what a signal or an exception makes of it."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("dtype", ["float32", "bool"])
@pytest.mark.parametrize("queries", [3, 33])
def test_no_attention_reads_beyond_its_mask(queries, dtype):
    """Of numbers of keys on both sides of whole vectors and of whole blocks."""
    rng = np.random.default_rng(queries)
    for keys in (7, 9, 20, 65):
        q, k, v = (Var((2, 3, n, 8), "float32") for n in (queries, keys, keys))
        mask = Var((queries, keys), dtype)
        given = {x: rng.standard_normal(x.shape, "f4") for x in (q, k, v)} | {mask: rng.random(mask.shape) < 0.7}
        values = [np.ascontiguousarray(x, node.dtype) for node, x in given.items()]
        y = cg.scaled_dot_product_attention(q, k, v, mask)
        function = cg.compile([y], list(given), engine=CpuEngine("host", threads=1))
        want = function(*values)[0]

        def run(function=function, values=values, want=want) -> None:
            for at_end in (False, True):
                np.testing.assert_array_equal(function(*(guarded(x, at_end) for x in values))[0], want)

        assert in_fork(run) == 0, keys


def run_between_pages(outputs: list[Node], given: dict[Var, np.ndarray], target: str) -> None:
    """Run a graph twice: inputs after a protected page, and inputs before one."""
    function = cg.compile(outputs, list(given), engine=CpuEngine(target, threads=1))
    want = function(*given.values())
    for at_end in (False, True):
        got = function(*(guarded(x, at_end) for x in given.values()))
        for one, other in zip(got, want):
            np.testing.assert_array_equal(one, other)


def tell(case: str) -> None:
    sys.stdout.write(f"{case}\n")
    sys.stdout.flush()


def run_cases(target: str) -> None:
    for case in CASES:
        tell(str(case))
        rng = np.random.default_rng(zlib.crc32(str(case).encode()))
        given = {Var(d.shape, d.dtype, f"x{i}"): d.array(rng) for i, d in enumerate(case.draws)}
        made = case.build(*given)
        run_between_pages([made] if isinstance(made, Node) else list(made), given, target)
    for columns, stride, taps in POOLS:
        tell(f"pools of {columns} columns with {taps} taps and a stride of {stride}")
        image, volume = Var((2, 5, columns), "float32", "image"), Var((2, 3, 3, columns), "float32", "volume")
        given = {x: np.random.default_rng(columns).standard_normal(x.shape, "float32") for x in (image, volume)}
        flat = cg.max_pool2d(image[None], (taps, taps), (1, stride))
        run_between_pages([flat, cg.avg_pool3d(volume[None], (1, taps, taps), (1, 1, stride))], given, target)
    for m, k, n in PRODUCTS:
        tell(f"a product of {m} x {k} and {k} x {n}")
        rng = np.random.default_rng(m * k * n)
        a, b = Var((m, k), "float32", "a"), Var((k, n), "float32", "b")
        given = {x: rng.standard_normal(x.shape, "float32") for x in (a, b)}
        run_between_pages([a @ b, a @ rng.standard_normal((k, n), "float32")], given, target)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows protects pages by other calls")
@pytest.mark.parametrize("target", TARGETS)
def test_no_kernel_reads_beyond_an_input(target):
    ran = subprocess.run([sys.executable, "-m", __name__, target], capture_output=True, text=True)
    assert ran.returncode == 0, f"{ran.stdout.splitlines()[-1:]}\n{ran.stderr[-2000:]}"


if __name__ == "__main__":
    run_cases(sys.argv[1])
