"""Which operand goes first among those at the same lowest offset: the orders the search tries in turn.

The time a search takes depends on its order by factors of thousands, and no order is good for every problem; a wrong
one shows soon, by not ending. So many different ones are tried for a short time each: a few rules, then random
mixtures.
"""

from collections.abc import Iterator

import numpy as np

from cgraph.memory.search.instance import SearchInstance, section_totals
from cgraph.memory.search.state import FEWEST, LOWEST, TIGHTEST
from cgraph.record import Record

# falling by each measure in turn; all but the second are MiniMalloc's, with length in sections instead of steps
RULES = (
    ("total", "length", "area"),
    ("area", "length", "total"),
    ("length", "area", "total"),
    ("total", "area", "length"),
)
# what to take next, and whether with the weights learned so far: some problems need the one, some the other
METHODS = ((LOWEST, False), (FEWEST, False), (TIGHTEST, False), (FEWEST, True), (TIGHTEST, True))


class Order(Record):
    """How a search goes: `rank` ``[n]``, smaller first; which operand is taken next; whether old weights are used."""

    rank: np.ndarray
    method: int
    learned: bool


def orders(instance: SearchInstance, count: int, turn: int) -> Iterator[Order]:
    """`count` orders for round `turn`: the fixed rules, then mixtures; methods rotate, one further in each round."""
    rng = np.random.default_rng(turn)
    measures = measures_of(instance)
    for k in range(count):
        keys = [measures[x] for x in RULES[k]] if k < len(RULES) else [mixture(measures, rng)]
        method, learned = METHODS[(k + turn) % len(METHODS)]
        yield Order(falling(*keys), method, learned)


def measures_of(instance: SearchInstance) -> dict[str, np.ndarray]:
    """What the rules go by: length in sections, size, area, and the largest total in use at one of the sections."""
    length = instance.end - instance.begin
    totals = section_totals(instance)
    greatest = np.array([totals[b:e].max() for b, e in zip(instance.begin, instance.end)], np.int64)
    area = length * instance.size.astype(np.float64)
    return {"length": length, "size": instance.size, "area": area, "total": greatest}


def mixture(measures: dict[str, np.ndarray], rng: "np.random.Generator") -> np.ndarray:
    """Product of random powers, as a logarithm; the total varies least from one operand to the next."""
    length, size, total = rng.uniform(-0.3, 1.7, 3)
    return length * np.log(measures["length"]) + size * np.log(measures["size"]) + 3 * total * np.log(measures["total"])


def falling(*measures: np.ndarray) -> np.ndarray:
    """Rank of each operand when sorted by falling measures, the first the most important; ties by position."""
    order = np.lexsort([-x for x in reversed(measures)])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank
