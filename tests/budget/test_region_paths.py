"""The shortest path over regions: the best of all ways by brute force, joins over forks, and estimates that grow."""

import itertools

import numpy as np
import pytest

from cgraph.budget.bands.region_paths import (
    Overlap,
    RegionChoice,
    Way,
    best_regions,
    closest,
    units_of,
    ways_of,
)


def row(first: int, join: int, around: int, alive: int, ns: float, fork: int = -1, ahead: int = 0, shared: int = 0):
    return (first, join, 1, around, fork, ahead, shared, alive, ns)


def test_units_are_sorted_by_their_first_step_and_none_is_planned():
    units = units_of([row(3, 4, 1, 10, 0.5), row(0, 2, 2, 20, 1.5), row(3, 3, 3, 30, 2.5)])
    assert units.first.tolist() == [0, 3, 3] and units.join.tolist() == [2, 4, 3]
    assert units.alive.tolist() == [20, 10, 30] == units.frame.tolist() and units.nanoseconds.tolist() == [
        1.5,
        0.5,
        2.5,
    ]
    assert not units.is_planned.any() and units.frame is not units.alive
    empty = units_of([])
    assert len(empty.first) == 0 and [way.nbytes for way in ways_of(empty, [5, 9, 7], None)] == [9, 9, 7, 0]


def test_estimates_rise_only_where_they_are_asked_for_and_nothing_is_planned():
    units = units_of([row(t, t, 0, 100, 0) for t in range(3)])
    units.is_planned[0] = True
    units.expect(np.array([True, True, False]), 0.1)
    assert units.frame.tolist() == [100, 110, 100] and units.alive.tolist() == [100] * 3
    units.expect(np.array([True, True, True]), 0.05)
    assert units.frame.tolist() == [100, 110, 105], "an estimate never falls"
    again = units.unplanned(np.array([1, 2, 3]))
    assert again.shared.tolist() == [1, 2, 3] and again.frame.tolist() == [100] * 3 and not again.is_planned.any()
    again.frame[0] = 7
    assert units.alive[0] == 100 and units.is_planned[0]


def test_a_region_has_the_fork_that_shares_most_of_those_read_inside_it_only():
    far, near = Overlap(2, 3, 0, 10), Overlap(4, 7, 0, 30)
    steps = (1, 3, 5, 7)
    assert closest([far, near], steps) == [Overlap(), far, near, near]
    assert closest([Overlap(0, 7, 0, 5), near], steps) == [Overlap(0, 7, 0, 5)] * 2 + [near] * 2
    assert closest([far], steps) == [Overlap(), far, Overlap(), Overlap()]
    assert closest([near, Overlap(4, 7, 8, 30)], steps)[3] is near, "the first of equals"
    assert closest([], steps) == [Overlap()] * 4


def cheapest(rows: list, whole: list[int], most: int | None) -> tuple[float, float]:
    """The least bytes beyond `most` and then the least time of all sets of regions that do not meet."""
    best = (np.inf, np.inf)
    for count in range(len(rows) + 1):
        for chosen in itertools.combinations(rows, count):
            spans = sorted((r[0], r[1]) for r in chosen)
            if any(a[1] >= b[0] for a, b in itertools.pairwise(spans)):
                continue
            inside = {t for first, join in spans for t in range(first, join + 1)}
            needs = [r[3] + r[7] for r in chosen] + [n for t, n in enumerate(whole) if t not in inside]
            nbytes = max(needs)
            best = min(best, (nbytes if most is None else max(nbytes, most), sum(r[8] for r in chosen)))
    return best


@pytest.mark.parametrize("seed", range(30))
def test_the_best_way_is_that_of_brute_force(seed):
    """Time counts among the ways that fit."""
    rng = np.random.default_rng(seed)
    whole = rng.integers(5, 40, 6).tolist()
    spans = [(a, b) for a in range(6) for b in range(a, 6)]
    rows = [row(*spans[i], *rng.integers(1, 25, 2).tolist(), float(rng.integers(1, 9))) for i in rng.choice(21, 7)]
    for most in (None, 15, 25, 60):
        units = units_of(rows)
        ways = ways_of(units, whole, most)
        choices = best_regions(units, ways)
        inside = {t for c in choices for t in range(units.first[c.unit], units.join[c.unit] + 1)}
        needs = [c.need(units) for c in choices] + [n for t, n in enumerate(whole) if t not in inside]
        assert max(needs) == ways[0].nbytes
        nbytes, ns = cheapest(rows, whole, most)
        assert (ways[0].nbytes if most is None else max(ways[0].nbytes, most)) == nbytes
        if nbytes == most:
            assert sum(units.nanoseconds[c.unit] for c in choices) == ns


def test_a_join_lies_over_its_fork_where_that_is_needed_and_smaller():
    """Step 0 makes the fork. A region over steps 1 to 2 needs 100 bytes apart, and 60 over its fork."""
    units = units_of([row(1, 2, 70, 30, 5.0, fork=0, ahead=8, shared=40)])
    for most, is_over in ((None, True), (99, True), (100, False)):
        ways = ways_of(units, [10, 200, 200], most)
        assert best_regions(units, ways) == [RegionChoice(0, is_over, 0)]
        assert ways[0].nbytes == (60 if is_over else 100) == RegionChoice(0, is_over, 0).need(units)
    assert best_regions(units, ways_of(units, [10, 50, 50], 99)) == [], "whole steps fit and take no longer"


@pytest.mark.parametrize(("chains_lose", "lost"), [(True, 8), (False, 0)])
def test_below_a_chain_of_joins_over_their_forks_bytes_are_lost(chains_lose, lost):
    """The join of steps 1 to 2 is the fork of the join of steps 3 to 4."""
    rows = [row(1, 2, 70, 30, 5.0, fork=0, ahead=16, shared=40), row(3, 4, 70, 30, 5.0, fork=2, ahead=8, shared=40)]
    units = units_of(rows)
    ways = ways_of(units, [10, 200, 200, 200, 200], None, chains_lose)
    assert ways[3] == Way(60, 1, True, 0) and ways[1] == Way(60 + lost, 0, True, lost)
    assert best_regions(units, ways) == [RegionChoice(0, True, lost), RegionChoice(1, True, 0)]
    assert RegionChoice(0, True, lost).need(units) == 60 + lost


def test_a_chain_goes_on_over_a_step_in_between():
    rows = [row(1, 2, 70, 30, 5.0, fork=0, ahead=16, shared=40), row(4, 5, 70, 30, 5.0, fork=2, ahead=8, shared=40)]
    ways = ways_of(units_of(rows), [10, 200, 200, 20, 200, 200], None)
    assert ways[4] == Way(60, 1, True, 0) and ways[3] == Way(60) and ways[1] == Way(68, 0, True, 8)
