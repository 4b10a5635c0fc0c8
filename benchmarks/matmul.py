"""Matrix products on one thread: ours, and NumPy's OpenBLAS with its AVX-512 kernels.

    OPENBLAS_CORETYPE=SKYLAKEX OPENBLAS_NUM_THREADS=1 python -m benchmarks.matmul

The peak is measured in the same run, by multiply-adds on registers.
"""

import os
from statistics import median

import numpy as np

from benchmarks.peak import peak
from benchmarks.prepared import aligned, alternate, prepare, workspace
from cgraph.kernels.gemm.matmul_calls import matmul_calls, matmul_nbytes
from cgraph.kernels.kernel import Pointer, View
from cgraph.kernels.target import host_target

# m, n, k, a or b transposed
SIZES = [
    (2048, 2048, 2048, ""), (1024, 1024, 1024, ""), (512, 512, 512, ""), (256, 256, 256, ""), (128, 128, 128, ""),
    (64, 64, 64, ""), (32, 32, 32, ""), (3136, 64, 256, ""), (3136, 256, 64, ""), (196, 1024, 256, ""),
    (49, 512, 2048, ""), (1024, 1024, 1024, "a"), (1024, 1024, 1024, "b"), (100_000, 16, 16, ""),
    (16, 100_000, 16, ""), (16, 16, 100_000, ""),
    (3000, 3000, 50, "b"), (1, 1000, 2048, ""), (1, 1000, 2048, "b"), (2000, 1, 2000, ""), (8, 512, 512, ""),
]  # fmt: skip


def operands(m: int, n: int, k: int, turned: str, dtype: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)

    def draw(rows: int, columns: int) -> np.ndarray:
        array = aligned(rows * columns * int(dtype[1])).view(dtype).reshape(rows, columns)
        array[:] = rng.standard_normal((rows, columns))
        return array

    a = draw(k, m).T if turned == "a" else draw(m, k)
    b = draw(n, k).T if turned == "b" else draw(k, n)
    return a, b, draw(m, n)


def view_of(x: np.ndarray) -> View:
    return View(Pointer(x), x.shape, x.strides, f"f{x.dtype.itemsize}")


def row(size: tuple[int, int, int, str], dtype: str, best: float) -> str:
    m, n, k, turned = size
    a, b, out = operands(m, n, k, turned, dtype)
    views = view_of(out), view_of(a), view_of(b)
    scratch = workspace(matmul_nbytes(host_target(), *views))
    ours = prepare(matmul_calls(host_target(), *views, workspace=scratch))
    want = np.empty_like(out)
    times = alternate({"ours": ours, "numpy": lambda: np.matmul(a, b, out=want)})
    flops = 2 * m * n * k / 1e9
    mine, theirs = (median(times[name]) for name in ("ours", "numpy"))
    fastest = flops / min(times["ours"])
    name = f"{dtype} {m:6} x {n:6} x {k:6} {turned:1}"
    ours_text = f"{mine * 1e6:10.1f} us {fastest:6.1f} GF/s {fastest / best:5.0%} of peak"
    return f"{name}  {ours_text}   numpy {theirs * 1e6:10.1f} us   ratio {theirs / mine:5.2f}"


if __name__ == "__main__":
    print("OPENBLAS_CORETYPE =", os.environ.get("OPENBLAS_CORETYPE"))
    rates = {dtype: peak(dtype) for dtype in ("f4", "f8")}
    print(", ".join(f"peak {dtype} {rate:.1f} GF/s" for dtype, rate in rates.items()))
    for size in SIZES:
        print(row(size, "f4", rates["f4"]), flush=True)
    for size in SIZES[:3]:
        print(row(size, "f8", rates["f8"]), flush=True)
