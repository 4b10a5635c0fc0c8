"""least_work: an order within some bytes that computes as little as possible again.

Idea: at the place with the most bytes in use, try each value that waits there: compute it again before its next read,
together with the values that would wait for it instead, as far back as one of several depths. Take the choice that
lowers the excess most for its work, until everything fits. Then omit reruns that are not needed, the most expensive
first. Then omit some at random and search again, while looks remain (large neighbourhood search: Shaw 1998,
doi:10.1007/3-540-49481-2_30). The seed is fixed, so a graph has one order.

Time: counted in looks at orders, each linear in the order. Graphs of few nodes have few orders, so the search meets
them repeatedly. It caches its results for each order, but still counts each look.

No bound on the distance to the optimum; measured against
a mixed-integer program in docs/recompute.md.
"""

import math
from collections.abc import Iterator, Sequence
from random import Random

from cgraph.rematerialise.reruns import Order, OrderIndex, Reruns, rerun_positions

DEPTHS = (0, 1, 2, 4, -1)  # depth of what is computed again for a value; -1: all that would wait
CHANCES = (0.0, 1.0, 1.0, 3.0, 3.0)  # tries to get below a number of bytes
PATIENCE = 6  # choices in a row that save nothing, before an order is abandoned
MOST_TRIED = 24  # values tried at a place: those with the most bytes for their work
SHARES = (0.15, 0.3, 0.5, 1.0)  # share of the reruns that are omitted at a time
WORK = 400_000  # nodes that a search may look at: about half a second
MOST_LOOKS = 8_000
ROUNDS = 100  # rounds without an improvement before a search ends


def looks_for(problem: Reruns) -> int:
    """Return the number of orders that a search may look at."""
    return min(WORK // max(len(problem.cost), 1), MOST_LOOKS)


def least_work(problem: Reruns, most: int, starts: Sequence[Sequence[int]]) -> Order | None:
    """Return an order with at most `most` bytes in use and little extra work; None if the search finds none.

    Its extra work is at most that of the cheapest of `starts` that fits. `starts`: orders to begin with.
    """
    search = LeastWorkSearch(problem, most, looks_for(problem))
    orders = []
    for start in starts:
        if search.looks > 0 and (order := search.fitted(problem.living(start))) is not None:
            orders.append(search.pruned(order))
    orders += [list(start) for start in starts if problem.peak(start) <= most]
    return search.improved(min(orders, key=problem.extra)) if orders else None


def least_bytes(problem: Reruns, start: Sequence[int], low: int) -> Order:
    """Return the order with the fewest bytes in use that is found, at least `low` and at most those of `start`, by
    bisection.
    """
    best, plain = problem.living(start), list(range(len(problem.cost)))
    high, looks = problem.peak(best), looks_for(problem)
    while low < high and looks > 0:
        search = LeastWorkSearch(problem, (low + high) // 2, looks)
        tries = (search.fitted(order, chance) for chance in CHANCES for order in (best, plain))
        smaller = next((order for order in tries if order is not None), None)
        looks = search.looks
        if smaller is None:
            low = search.most + 1
            continue
        best, high = smaller, problem.peak(smaller)
    return LeastWorkSearch(problem, high, looks_for(problem)).improved(best)


class LeastWorkSearch:
    """Orders within some bytes. Changes: counts the orders that it looks at, and remembers them.

    Fields
        most: limit of the bytes in use
        looks: orders that may still be looked at
    Memory: a few integers for each node that is looked at, so a few times `WORK`.
    """

    def __init__(self, problem: Reruns, most: int, looks: int) -> None:
        self.problem, self.most, self.looks, self.random = problem, most, looks, Random(0)
        self.excesses: dict[tuple[int, ...], tuple[int, int]] = {}
        self.neighbours: dict[tuple[int, ...], list[Order]] = {}
        self.shortened: dict[tuple[int, ...], Order] = {}

    def over(self, order: Sequence[int]) -> tuple[int, int]:
        """Return the bytes in use beyond `most`, summed over all places, and the place with the most bytes."""
        self.looks -= 1
        key = tuple(order)
        if key not in self.excesses:
            self.excesses[key] = self.excess(order)
        return self.excesses[key]

    def excess(self, order: Sequence[int]) -> tuple[int, int]:
        """Compute what `over` returns."""
        breadths = self.problem.breadths(order)
        top = max(breadths, default=0)
        over = sum([b - self.most for b in breadths if b > self.most])
        return over, breadths.index(top) if breadths else 0

    def fitted(self, order: Order, chance: float = 0.0) -> Order | None:
        """Return an order that fits, made from one that may not; None if none is found. `chance`: probability of other
        choices.
        """
        over, place = self.over(order)
        least, patience = over, PATIENCE
        while over:
            spent, best, most = self.problem.extra(order), None, -math.inf
            for other in self.nearby(order, place):
                left, at = self.over(other)
                gain, work = over - left, max(self.problem.extra(other) - spent, 1)
                value = (gain / work if gain > 0 else gain * work) * (1 + chance * self.random.random())
                if value > most:
                    best, most = (other, left, at), value
            if best is None or self.looks <= 0 or not patience:
                return None
            order, over, place = best
            least, patience = (over, PATIENCE) if over < least else (least, patience - 1)
        return order

    def nearby(self, order: Order, place: int) -> list[Order]:
        """Return the orders of `relieved` at the place with the most bytes, which is the same each time."""
        key = tuple(order)
        if key not in self.neighbours:
            self.neighbours[key] = list(self.relieved(order, place))
        return self.neighbours[key]

    def relieved(self, order: Order, place: int) -> Iterator[Order]:
        """Yield orders in which one of the values that wait at a place is computed again after it."""
        places, cost, nbytes = OrderIndex(self.problem, order), self.problem.cost, self.problem.dag.nbytes
        waiting = [(i, read) for i, read in places.waiting(place) if places.may_run(i, read)]
        for i, read in sorted(waiting, key=lambda x: cost[x[0]] / max(nbytes[x[0]], 1))[:MOST_TRIED]:
            ways = [places.again([i], read, place, depth) for depth in DEPTHS]
            ways.append(places.again(places.beside(read, place), read, place, -1))
            for runs in dict.fromkeys(map(tuple, ways)):
                yield self.problem.living([*order[:read], *runs, *order[read:]])

    def pruned(self, order: Order) -> Order:
        """Return an order that fits without the reruns that it does not need, the most expensive omitted first."""
        cost = self.problem.cost
        at = 0
        while self.looks > 0:
            places = sorted(rerun_positions(order), key=lambda place: -cost[order[place]])
            if at >= len(places):
                break
            place = places[at]
            other = self.without(order, place)
            if self.over(other)[0]:
                at += 1
            else:
                order = other
        return order

    def without(self, order: Order, place: int) -> Order:
        """Return an order without the run at a place, nor those that only it reads."""
        key = (*order[:place], *order[place + 1 :])
        if key not in self.shortened:
            self.shortened[key] = self.problem.living(key)
        return self.shortened[key]

    def improved(self, order: Order) -> Order:
        """Return an order that fits, with less extra work if the looks suffice to find one."""
        best = order
        least = cost = self.problem.extra(best)
        rounds = ROUNDS
        while self.looks > 0 and least > 0 and rounds:
            rounds -= 1
            share = self.random.choice(SHARES)
            gone = {place for place in rerun_positions(order) if self.random.random() < share}
            other = self.fitted(self.problem.living([i for p, i in enumerate(order) if p not in gone]), 1.0)
            if other is None:
                continue
            other = self.pruned(other)
            extra = self.problem.extra(other)
            if extra <= cost:
                order, cost = other, extra
            if extra < least:
                best, least, rounds = other, extra, ROUNDS
        return best
