"""The result of a call builder whose calls read tables: the calls, and the arrays that they need."""

from collections.abc import Sequence

import numpy as np

from cgraph.kernels.kernel import Call
from cgraph.record import Record

CHUNK_NS = 4000.0  # a chunk lasts at least this long, so that handing it out (about 50 ns) costs little


class KernelCalls(Record):
    """Kernel calls, and the constant tables that their Pointers have as base; the engine keeps those alive."""

    calls: tuple[Call, ...] = ()
    constants: tuple[np.ndarray, ...] = ()

    def __add__(self, other: "KernelCalls") -> "KernelCalls":
        return KernelCalls(self.calls + other.calls, self.constants + other.constants)


def join_calls(parts: Sequence[KernelCalls]) -> KernelCalls:
    """Return all calls in order, and all constants."""
    return KernelCalls(
        tuple(c for p in parts for c in p.calls),
        tuple(a for p in parts for a in p.constants),
    )


def chunk_of(tasks: int, nanoseconds: float) -> int:
    """Return the tasks of a chunk, for tasks of about `nanoseconds` each: at most 64 chunks, for 2 to 16 threads.

    Chunks have about equal sizes, so that threads that share them end together.
    """
    most = max(1, -(-tasks // 64), min(tasks, int(CHUNK_NS / max(nanoseconds, 1.0))))
    count = -(-tasks // most)
    return -(-tasks // (count + count % 2)) if count > 1 else most


def table(values: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return a constant table of int64; never empty, so that it has an address."""
    return np.ascontiguousarray(values if len(values) else [0], np.int64)
