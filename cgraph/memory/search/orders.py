"""Orders of operands at the same lowest offset: the search tries them in turn.

The time of a search varies with its order by factors of thousands, and no order is good for every problem; a bad one
soon shows by not ending. So many different orders are tried for a short time each: a few rules, then random mixtures.
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
# the operand to take next, and whether weights of earlier searches are used: problems differ in which is better
METHODS = ((LOWEST, False), (FEWEST, False), (TIGHTEST, False), (FEWEST, True), (TIGHTEST, True))


class Order(Record):
    """Settings of one search: `rank` ``[n]``, smaller first; the operand to take next; whether old weights are used."""

    rank: np.ndarray
    method: int
    learned: bool


def orders(instance: SearchInstance, count: int, turn: int) -> Iterator[Order]:
    """Return `count` orders for round `turn`: the fixed rules, then mixtures; methods rotate by one in each round."""
    rng = np.random.default_rng(turn)
    measures = measures_of(instance)
    for k in range(count):
        keys = [measures[x] for x in RULES[k]] if k < len(RULES) else [mixture(measures, rng)]
        method, learned = METHODS[(k + turn) % len(METHODS)]
        yield Order(falling(*keys), method, learned)


def measures_of(instance: SearchInstance) -> dict[str, np.ndarray]:
    """Return the measures of the rules: length in sections, size, area, and the largest total in use at one of the
    sections.
    """
    length = instance.end - instance.begin
    totals = section_totals(instance)
    greatest = np.array([totals[b:e].max() for b, e in zip(instance.begin, instance.end)], np.int64)
    area = length * instance.size.astype(np.float64)
    return {"length": length, "size": instance.size, "area": area, "total": greatest}


def mixture(measures: dict[str, np.ndarray], rng: "np.random.Generator") -> np.ndarray:
    """Return the product of random powers, as a logarithm; the total varies least from one operand to the next."""
    length, size, total = rng.uniform(-0.3, 1.7, 3)
    return length * np.log(measures["length"]) + size * np.log(measures["size"]) + 3 * total * np.log(measures["total"])


def falling(*measures: np.ndarray) -> np.ndarray:
    """Return the rank of each operand when sorted by falling measures, the first the most important; ties by
    position.
    """
    order = np.lexsort([-x for x in reversed(measures)])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank
