"""What a call builder returns when its calls read tables: the calls, and the arrays that must stay alive with them."""

from collections.abc import Sequence

import numpy as np

from cgraph.kernels.kernel import Call
from cgraph.record import Record

CHUNK_NS = 4000.0  # a chunk lasts at least this long, so that handing it out (about 50 ns) costs little


class KernelCalls(Record):
    """Kernel calls, and the constant tables that their Pointers name as base: the engine keeps those alive."""

    calls: tuple[Call, ...] = ()
    constants: tuple[np.ndarray, ...] = ()

    def __add__(self, other: "KernelCalls") -> "KernelCalls":
        return KernelCalls(self.calls + other.calls, self.constants + other.constants)


def join_calls(parts: Sequence[KernelCalls]) -> KernelCalls:
    """All calls in order, all constants."""
    return KernelCalls(
        tuple(c for p in parts for c in p.calls),
        tuple(a for p in parts for a in p.constants),
    )


def chunk_of(tasks: int, nanoseconds: float) -> int:
    """Tasks handed out at once, for tasks of about `nanoseconds` each: 64 chunks or fewer, serving 2 to 16 threads.

    Chunks are about equal, so that threads that share them end together.
    """
    most = max(1, -(-tasks // 64), min(tasks, int(CHUNK_NS / max(nanoseconds, 1.0))))
    count = -(-tasks // most)
    return -(-tasks // (count + count % 2)) if count > 1 else most


def table(values: Sequence[int] | np.ndarray) -> np.ndarray:
    """A constant table of int64; never empty, so that it has an address."""
    return np.ascontiguousarray(values if len(values) else [0], np.int64)
