"""Lower bounds of plans: operator breadths and positional maximums.

An operator's profile is the set of operands in use at its step; its breadth is the sum of their bytes. Both can grow
only at a step where an operand starts, so profiles are taken at those steps only, however large step numbers are.

Source: Pisarchyk and Lee 2020, arXiv:2001.03288, sections 3, 4.1 and 5.1.
"""

import numpy as np

from cgraph.memory.problem import Problem, Spans


def lower_bound(problem: Problem | Spans) -> int:
    """Return the bytes that every plan needs: the largest operator breadth. Time O(n log n)."""
    return int(operator_breadths(problem)[1].max(initial=0))


def block_lower_bound(problem: Problem) -> int:
    """Return the bytes that every plan in blocks needs: the sum of the positional maximums. Time O(n m) for m steps."""
    return sum(positional_maximums(problem))


def operator_breadths(problem: Problem | Spans) -> tuple[np.ndarray, np.ndarray]:
    """Return the steps at which an operand starts, rising, and the bytes in use at each: two int64 arrays ``[m]``."""
    starts = problem.starts
    return starts, breadths_at(problem, starts)


def breadths_at(problem: Problem | Spans, steps: np.ndarray) -> np.ndarray:
    """Return the bytes in use at each of `steps`, int64 ``[m]``."""
    started = _bytes_until(problem.first, problem.nbytes, steps, "right")
    ended = _bytes_until(problem.last, problem.nbytes, steps, "left")
    return started - ended


def operator_profiles(problem: Problem) -> list[list[int]]:
    """Return, for each step of `operator_breadths`, the positions of the operands in use, rising."""
    profiles: list[list[int]] = [[] for _ in problem.starts]
    for i, (first, last) in enumerate(zip(*start_ranks(problem))):
        for rank in range(first, last + 1):
            profiles[rank].append(i)
    return profiles


def positional_maximums(problem: Problem) -> list[int]:
    """Return the largest i-th size over all profiles, each sorted by falling size, for i = 0, 1, …

    Operands are added to their steps from the largest down: the first operand with which i of them meet at a step is
    the i-th maximum.
    """
    sizes = problem.nbytes.tolist()
    first, last = start_ranks(problem)
    meeting = np.zeros(max(last, default=-1) + 1, np.int32)
    maximums: list[int] = []
    for i in np.argsort(-problem.nbytes, kind="stable").tolist():
        steps = meeting[first[i] : last[i] + 1]
        steps += 1
        if steps.max() > len(maximums) and sizes[i]:
            maximums.append(sizes[i])
    return maximums


def start_ranks(problem: Problem) -> tuple[list[int], list[int]]:
    """Return usage intervals in numbers of starting steps: the same intervals meet, and none is longer than n."""
    first = np.searchsorted(problem.starts, problem.first)
    last = np.searchsorted(problem.starts, problem.last, "right") - 1
    return first.tolist(), last.tolist()


def _bytes_until(times: np.ndarray, nbytes: np.ndarray, steps: np.ndarray, side: str) -> np.ndarray:
    """Return the sum of `nbytes` over times before each step (`left`) or up to and including it (`right`)."""
    order = np.argsort(times, kind="stable")
    total = np.concatenate(([0], np.cumsum(nbytes[order])))
    return total[np.searchsorted(times[order], steps, side)]  # type: ignore[call-overload]
