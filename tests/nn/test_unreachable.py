"""Pairs of workers that do not reach one another: when one is left out, which one, and for how long."""

from types import SimpleNamespace

from nn.parallel.unreachable import PAUSE, ROUNDS, UnreachablePairs

CREW = ["a", "b", "c", "d"]


def misses(**missing):
    """Reports in which each worker names the index of the one that it misses."""
    return {worker: SimpleNamespace(missing=i) for worker, i in missing.items()}


def failed(pairs: UnreachablePairs, rounds: int = ROUNDS, now: float = 100.0, **missing) -> UnreachablePairs:
    for _ in range(rounds):
        pairs.record(CREW, misses(**missing), now)
    return pairs


def test_a_pair_that_fails_in_two_rounds_is_parted_and_the_last_is_left_out():
    pairs = UnreachablePairs(2.0)
    failed(pairs, 1, a=1)
    assert pairs.without(CREW, 100.0) == CREW
    failed(pairs, 1, a=1)
    assert pairs.without(CREW, 100.0) == ["a", "c", "d"]
    assert pairs.without(["b", "a"], 100.0) == ["a"] and pairs.without(["b", "c"], 100.0) == ["b", "c"]


def test_who_says_that_the_other_is_missing_does_not_count():
    """One round in which both miss each other is one round; a's and b's complaints in turn are two."""
    pairs = UnreachablePairs(2.0)
    pairs.record(CREW, misses(a=1, b=0), 100.0)
    assert pairs.without(CREW, 100.0) == CREW
    pairs.record(CREW, misses(b=0, c=-1), 100.0)
    assert pairs.without(CREW, 100.0) == ["a", "c", "d"]


def test_nobody_is_missed_at_minus_one():
    assert not failed(UnreachablePairs(2.0), a=-1, b=-1).rounds


def test_after_the_pause_the_pair_is_tried_again():
    pairs = failed(UnreachablePairs(2.0), now=100.0, a=1)
    assert PAUSE * 2.0 == pairs.seconds == 20.0
    assert pairs.without(CREW, 119.0) == ["a", "c", "d"]
    assert pairs.without(CREW, 120.0) == CREW
    failed(pairs, 1, now=130.0, a=1)
    assert pairs.without(CREW, 149.0) == ["a", "c", "d"]


def test_who_is_in_most_pairs_is_left_out_alone():
    pairs = failed(UnreachablePairs(2.0), a=1, c=0)
    assert pairs.without(CREW, 100.0) == ["b", "c", "d"]
    assert pairs.without(["a", "b"], 100.0) == ["a"]


def test_pairs_without_a_common_worker_lose_one_each():
    pairs = failed(UnreachablePairs(2.0), a=1, c=3)
    assert pairs.without(CREW, 100.0) == ["a", "c"]


def test_a_round_of_both_forgets_their_failures():
    pairs = failed(UnreachablePairs(2.0), a=1)
    pairs.forget(["a", "c", "d"])
    assert pairs.without(CREW, 100.0) == ["a", "c", "d"]
    pairs.forget(["a", "b"])
    assert pairs.without(CREW, 100.0) == CREW and not pairs.rounds and not pairs.until
    failed(pairs, 1, a=1)
    assert pairs.without(CREW, 100.0) == CREW
