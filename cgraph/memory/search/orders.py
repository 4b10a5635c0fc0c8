"""Which operand goes first among those at the same lowest offset: the orders the search tries in turn.

The time a search takes depends on its order by factors of thousands, and no order is good for every problem; a wrong one
shows soon, by not ending. So many different ones are tried for a short time each: a few rules, then random mixtures.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cgraph.memory.search.instance import Instance


@dataclass(frozen=True)
class Order:
    """`rank` ``[n]``: smaller goes first; `tightest`: take the operand from the tightest section, see the kernel."""

    rank: np.ndarray
    tightest: bool


def orders(instance: Instance, mixtures: int = 0, seed: int = 0) -> Iterator[Order]:
    """The fixed rules, then `mixtures` products of random powers of length, size and greatest total.

    Falling by each measure in turn, ties by the next and by position. MiniMalloc's orders are (length, area, total),
    (total, area, length) and (total, length, area), with length in steps; here it is counted in sections.
    """
    length = instance.end - instance.begin
    size = instance.size
    area = length * size.astype(np.float64)
    total = greatest_totals(instance)
    yield Order(falling(total, length, area), False)
    yield Order(falling(area, length, total), False)
    yield Order(falling(length, area, total), False)
    yield Order(falling(area, length, total), True)
    yield Order(falling(total, area, length), False)
    yield Order(falling(length, area, total), True)
    rng = np.random.default_rng(seed)
    logs = np.log([length, size, total])
    for k in range(mixtures):
        powers = rng.uniform(-0.3, 1.7, 3) * (1, 1, 3)
        yield Order(falling(powers @ logs), k % 4 == 3)


def falling(*measures: np.ndarray) -> np.ndarray:
    """Rank of each operand when sorted by falling measures, the first the most important; ties by position."""
    order = np.lexsort([-x for x in reversed(measures)])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank


def greatest_totals(instance: Instance) -> np.ndarray:
    """The largest total size in use at one section of each operand, units ``[n]``."""
    totals = section_totals(instance)
    return np.array([totals[b:e].max() for b, e in zip(instance.begin, instance.end)], np.int64)


def section_totals(instance: Instance) -> np.ndarray:
    """Units in use at each section ``[m]``; the largest is the lower bound."""
    running = np.concatenate([[0], np.cumsum(instance.size[instance.member])])
    return running[instance.member_start[1:]] - running[instance.member_start[:-1]]
