"""The peak of one thread for floats and for bytes, measured by multiply-adds on registers.

python -m benchmarks.peak
"""

import time

import numpy as np

from benchmarks.prepared import prepare
from cgraph.kernels.kernel import Call, Pointer
from cgraph.kernels.llvm.bytes import GROUP
from cgraph.kernels.peak.emit import CHAINS
from cgraph.kernels.peak.signature import ADD_PRODUCTS, MULTIPLY_ADD
from cgraph.kernels.target import host_target

TASKS = 500_000


def peak(dtype: str) -> float:
    """Return float operations per second, in units of 1e9."""
    lanes = host_target().lanes_of(dtype)
    call = MULTIPLY_ADD.call((dtype,), TASKS, x=Pointer(np.zeros(CHAINS * lanes, dtype)))
    return 2 * lanes * CHAINS * 4 * TASKS / best(call) / 1e9


def peak_of_bytes() -> float:
    """Return byte operations per second, in units of 1e9."""
    lanes = host_target().lanes
    call = ADD_PRODUCTS.call((), TASKS, x=Pointer(np.zeros(CHAINS * lanes, "i4")))
    return 2 * GROUP * lanes * CHAINS * 4 * TASKS / best(call) / 1e9


def best(call: Call) -> float:
    """Return the shortest of 20 runs of about 0.02 s."""
    run, found = prepare([call]), float("inf")
    for _ in range(20):
        start = time.perf_counter()
        run()
        found = min(found, time.perf_counter() - start)
    return found


if __name__ == "__main__":
    for dtype in ("f4", "f8"):
        print(f"{dtype}: {peak(dtype):.1f} GF/s")
    print(f"bytes: {peak_of_bytes():.1f} Gop/s")
