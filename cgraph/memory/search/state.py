"""State of a search over offsets: arrays that the compiled kernel changes in place, and its constants."""

from typing import NamedTuple

import numpy as np

from cgraph.memory.search.instance import SearchInstance, section_totals

# results of a search: a plan, no plan possible, node limit reached, trail too short
SOLVED, REFUTED, PAUSED, FULL = 1, 2, 3, 4

# the waiting operand that is taken next: see `choose` in the kernel
LOWEST, TIGHTEST, FEWEST = 0, 1, 2


class State(NamedTuple):
    """n operands, m sections, units. `lowest`, `base`, `floor` and `firsts` are views of `value`, in that order."""

    value: np.ndarray  # [2 n + 2 m] values that the trail restores
    lowest: np.ndarray  # [n] lower bound of the offset; the offset itself once placed
    base: np.ndarray  # [n] highest top among placed neighbours
    floor: np.ndarray  # [m] smallest `lowest` of the waiting operands
    firsts: np.ndarray  # [m] number of waiting operands that may be the lowest
    stamp: np.ndarray  # [2 n + 2 m] serial of the frame that last saved the value
    waiting: np.ndarray  # bool [n]
    total: np.ndarray  # [m] units waiting
    crossing: np.ndarray  # [m + 1] waiting operands in use on both sides of a border
    frames: np.ndarray  # [n, 5] open choices: operand, trail before it, serial, range of sections
    trail: np.ndarray  # [entries, 3] saved values: position, old value, old stamp
    queue: np.ndarray  # [n] operands whose support must be looked at
    queued: np.ndarray  # bool [n]
    dirty: np.ndarray  # [m] sections that must be looked at
    is_dirty: np.ndarray  # bool [m]
    dirty_count: np.ndarray  # [1]
    rank: np.ndarray  # [n] smaller is taken first
    weight: np.ndarray  # float64 [m] how often a section refuted a branch
    counters: np.ndarray  # [7] frames open, trail length, nodes, waiting, frames ever opened, range of sections


def new_state(instance: SearchInstance, rank: np.ndarray, weight: np.ndarray) -> State:
    """Return a search that has placed nothing. `weight` is shared, not copied: later searches learn from it."""
    n, m = len(instance.size), len(weight)
    value = np.zeros(2 * n + 2 * m, np.int64)
    lowest, base, floor, firsts = np.split(value, [n, 2 * n, 2 * n + m])
    return State(
        value=value,
        lowest=lowest,
        base=base,
        floor=floor,
        firsts=firsts,
        stamp=np.zeros_like(value),
        waiting=np.ones(n, np.bool_),
        total=section_totals(instance),
        crossing=crossings(instance, m),
        frames=np.zeros((n, 5), np.int64),
        trail=np.zeros((16 * len(value), 3), np.int64),
        queue=np.zeros(n, np.int64),
        queued=np.zeros(n, np.bool_),
        dirty=np.arange(m),
        is_dirty=np.ones(m, np.bool_),
        dirty_count=np.array([m]),
        rank=rank,
        weight=weight,
        counters=np.array([0, 0, 0, n, 0, 0, m]),
    )


def with_longer_trail(state: State) -> State:
    """Return the same search with capacity for twice as many saved values."""
    return state._replace(trail=np.concatenate([state.trail, np.zeros_like(state.trail)]))


def crossings(instance: SearchInstance, m: int) -> np.ndarray:
    """Return the number of operands in use in both section ``s - 1`` and section `s`, ``[m + 1]``."""
    change = np.bincount(instance.begin + 1, minlength=m + 2) - np.bincount(instance.end, minlength=m + 2)
    return np.cumsum(change)[: m + 1]
