"""First fit of groups of several pieces: as a plain loop over bytes and steps says; a search only makes it smaller."""

import numpy as np
import pytest

from cgraph.errors import PlanError
from cgraph.kernels.target import target_named
from cgraph.memory import packing
from cgraph.memory.packing import Group, Packing, Slab
from tests.support.kernels import TARGETS

SEEDS = range(40)


def drawn(rng) -> list[Group]:
    """Groups of one to four pieces, some of no bytes, some with room between them."""
    found = []
    for i in range(int(rng.integers(1, 25))):
        at, slabs = 0, []
        for _ in range(int(rng.integers(1, 5))):
            first, nbytes = int(rng.integers(0, 20)), int(rng.integers(0, 90))
            slabs.append(Slab(at, nbytes, first, first + int(rng.integers(0, 6))))
            at += nbytes + int(rng.choice([0, 0, 30]))
        found.append(Group(f"x{i}", 0, tuple(slabs)))
    return found


def clash(x: Group, at: int, y: Group, other: int) -> bool:
    """Two groups have a byte in common at a step."""
    pairs = ((a, b) for a in x.slabs for b in y.slabs if a.first <= b.last and b.first <= a.last)
    return any(at + a.at < other + b.at + b.nbytes and other + b.at < at + a.at + a.nbytes for a, b in pairs)


def plain_first_fit(groups, order, alignment):
    bases = {}
    for i in order:
        at = 0
        while any(clash(groups[i], at, groups[k], base) for k, base in bases.items()):
            at += alignment
        bases[i] = at
    return [bases[i] for i in range(len(groups))]


@pytest.mark.parametrize("seed", SEEDS)
def test_groups_of_one_piece_meet_as_those_of_several_do(seed):
    alone = [Group(x.name, 0, x.slabs[:1]) for x in drawn(np.random.default_rng(seed))]
    late = Group("late", 0, (Slab(0, 8, 90, 91), Slab(8, 8, 90, 91)))  # meets none of them
    for fast, slow in zip(packing.meetings(alone), packing.meetings([*alone, late])):
        np.testing.assert_array_equal(fast, slow[: len(fast)])
        assert fast.dtype == slow.dtype and (slow[len(fast) :] == slow[len(fast) - 1 : len(fast)]).all()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", SEEDS)
def test_groups_lie_where_a_plain_loop_puts_them(seed, target, monkeypatch):
    monkeypatch.setattr(packing, "host_target", lambda: target_named(target))
    rng = np.random.default_rng(seed)
    groups = drawn(rng)
    for alignment in (1, 64):
        packed, order = Packing(groups, alignment), rng.permutation(len(groups))
        nbytes = packed.tried(order)
        assert packed.trial_bases.tolist() == plain_first_fit(groups, order, alignment)
        top = max(base + group.nbytes for base, group in zip(packed.trial_bases.tolist(), groups))
        assert nbytes == -(-top // alignment) * alignment


@pytest.mark.parametrize("seed", SEEDS)
def test_a_longer_search_is_sound_and_never_larger(seed):
    packed, before = Packing(drawn(np.random.default_rng(seed)), 8), None
    for work in (0, 100, 5000):
        packed.improve(work)
        packed.check()
        assert packed.bound <= packed.nbytes <= (before or packed.nbytes)
        before = packed.nbytes


def test_a_search_ends_with_enough():
    packed = next(x for x in (Packing(drawn(np.random.default_rng(seed)), 1) for seed in SEEDS) if not x.is_least)
    before = packed.bases
    packed.improve(10**6, packed.nbytes)
    assert packed.bases is before
    packed.improve(10**6, packed.nbytes - 1)
    assert packed.bases is not before


@pytest.mark.parametrize("seed", range(10))
def test_bytes_in_use_and_the_first_orders_are_those_of_plain_counting(seed):
    groups = drawn(np.random.default_rng(seed))
    slabs = [x for group in groups for x in group.slabs]
    breadths = packing.breadths_of(groups)
    assert breadths[:-1].tolist() == [
        sum(x.nbytes for x in slabs if x.first <= t <= x.last) for t in range(len(breadths) - 1)
    ]
    assert Packing(groups, 8).bound == max(breadths) and breadths[-1] == 0
    for group in groups:
        steps = {t for x in group.slabs for t in (x.first, x.last)}
        assert (group.first_step, group.last_step, group.steps) == (min(steps), max(steps), max(steps) - min(steps) + 1)

    def broadest(group: Group) -> int:
        return max(breadths[t] for t in range(group.first_step, group.last_step + 1))

    every = range(len(groups))
    for long in packing.LONG:
        weight = {i: groups[i].nbytes * groups[i].steps ** long for i in every}
        assert packing.by_size(groups, long).tolist() == sorted(every, key=lambda i: -weight[i])
    order = sorted(every, key=lambda i: (-broadest(groups[i]), -groups[i].nbytes))
    assert packing.by_breadth(groups, breadths).tolist() == order


def test_a_packing_of_nothing_has_no_bytes():
    packed = Packing([], 64)
    packed.improve(1000)
    packed.check()
    assert (packed.nbytes, packed.bound, packed.is_least, packed.bases.tolist()) == (0, 0, True, [])


@pytest.mark.parametrize(("base", "nbytes", "text"), [(0, 127, "leave"), (1, 128, "leave"), (-1, 128, "begins before")])
def test_a_group_that_leaves_the_arena_is_refused(base, nbytes, text):
    groups = [Group("x", 0, (Slab(0, 64, 0, 4), Slab(64, 64, 2, 3)))]
    packing.check_groups(groups, [0], 128)
    with pytest.raises(PlanError, match=text):
        packing.check_groups(groups, [base], nbytes)


def test_places_that_share_bytes_are_refused():
    packed = Packing([Group("x", 0, (Slab(0, 64, 0, 4),)), Group("y", 0, (Slab(0, 64, 3, 3),))], 64)
    packed.check()
    packed.bases[:] = 0
    with pytest.raises(PlanError, match="share bytes"):
        packed.check()


def test_an_arena_is_the_least_if_it_exceeds_the_bound_by_less_than_the_alignment():
    packed = Packing([Group("x", 0, (Slab(0, 100, 0, 1),))], 64)
    assert (packed.bound, packed.nbytes, packed.is_least) == (100, 128, True)
    for nbytes, is_least in ((163, True), (164, False)):
        packed.nbytes = nbytes
        assert packed.is_least == is_least
