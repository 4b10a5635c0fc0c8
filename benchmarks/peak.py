"""The floating-point peak of one thread, measured by multiply-adds on registers.

python -m benchmarks.peak
"""

import time

import numpy as np

from benchmarks.prepared import prepare
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.llvm.peak import CHAINS
from cgraph.kernels.signatures.peak import MULTIPLY_ADD
from cgraph.kernels.target import host_target

TASKS = 500_000


def peak(dtype: str) -> float:
    """Operations per second, in units of 1e9: the best of 20 runs of about 0.02 s."""
    lanes = host_target().lanes_of(dtype)
    run = prepare([MULTIPLY_ADD.call((dtype,), TASKS, x=Pointer(np.zeros(CHAINS * lanes, dtype)))])
    best = float("inf")
    for _ in range(20):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return 2 * lanes * CHAINS * 4 * TASKS / best / 1e9


if __name__ == "__main__":
    for dtype in ("f4", "f8"):
        print(f"{dtype}: {peak(dtype):.1f} GF/s")
