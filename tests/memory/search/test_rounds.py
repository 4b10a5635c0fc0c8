"""Rounds of a search: limits on nodes and time, and the answers found, none, and open."""

from types import SimpleNamespace

import numpy as np
import pytest

from cgraph.memory.problem import problem_of
from cgraph.memory.search import kernel, rounds
from cgraph.memory.search.instance import SearchInstance, instance_of
from cgraph.memory.search.rounds import CHUNK, Answer, Effort, try_order, try_round
from cgraph.memory.search.state import PAUSED, new_state, with_longer_trail


def instance(*rows: tuple[int, int, int]) -> SearchInstance:
    return instance_of(problem_of(rows), np.arange(len(rows)), 1)


THREE = instance((2, 0, 1), (3, 1, 2), (2, 2, 3))  # two meet at each step; 5 units suffice


def test_an_effort_is_spent_when_its_nodes_or_its_time_are():
    assert Effort(None, 5, used=5).is_spent and not Effort(None, 5, used=4).is_spent
    assert Effort(0.0, None).is_spent and not Effort(1e9, None).is_spent and not Effort(None, None, used=10**9).is_spent


def test_a_chunk_is_never_longer_than_what_is_left():
    assert Effort(None, None).chunk(7, THREE) == 7
    assert Effort(None, 10, used=4).chunk(7, THREE) == 6
    assert Effort(None, None).chunk(10**6, THREE) == CHUNK
    crowd = THREE._replace(neighbour=np.zeros(10**6 - 1, np.int64))
    assert Effort(None, None).chunk(10**6, crowd) == 64 + 40


def test_an_answer_is_open_until_there_is_a_plan_or_a_proof():
    assert Answer().is_open
    assert not Answer(refuted=True).is_open and not Answer(offsets=np.zeros(1, np.int64)).is_open


def test_a_capacity_that_suffices_gives_a_plan_and_one_unit_less_a_proof():
    answer = try_round(THREE, 5, 0, Effort(None, 1000), np.ones(2, np.int64))
    at = answer.offsets.tolist()
    assert max(x + n for x, n in zip(at, (2, 3, 2))) == 5 and not answer.refuted
    for i, k in ((0, 1), (1, 2)):
        assert at[i] + THREE.size[i] <= at[k] or at[k] + THREE.size[k] <= at[i]
    answer = try_round(THREE, 4, 0, Effort(None, 1000), np.ones(2, np.int64))
    assert answer.refuted and answer.offsets is None


def test_an_effort_without_nodes_ends_after_one_order_and_tells_of_nothing(monkeypatch):
    tries = []

    def counted(*args):
        tries.append(args)
        return try_order(*args)

    monkeypatch.setattr(rounds, "try_order", counted)
    told: list[int] = []
    answer = try_round(THREE, 5, 0, Effort(None, 0, tell=lambda: told.append(1)), np.ones(2, np.int64))
    assert answer.is_open and len(tries) == 1 and not told


@pytest.mark.parametrize(("turn", "limit"), [(0, 403), (2, 681)])
def test_nodes_grow_from_round_to_round_and_old_weights_go_to_learned_orders_alone(turn, limit, monkeypatch):
    weight, tries = np.full(2, 7), []

    def nothing(problem, capacity, order, nodes, effort, weights):
        tries.append((order.learned, nodes, weights is weight, weights.tolist()))
        return Answer()

    monkeypatch.setattr(rounds, "try_order", nothing)
    assert try_round(THREE, 5, turn, Effort(None, None), weight).is_open
    assert len(tries) == rounds.ORDERS and {x[1] for x in tries} == {limit}
    assert all(own is learned and values == ([7, 7] if learned else [1, 1]) for learned, _, own, values in tries)
    assert {x[0] for x in tries} == {True, False}


def test_visited_nodes_are_counted_and_told():
    told: list[int] = []
    effort = Effort(None, 1000, tell=lambda: told.append(effort.used))
    try_round(THREE, 5, 0, effort, np.ones(2, np.int64))
    assert told and told[-1] == effort.used > 0


def test_the_time_is_over_at_its_very_end(monkeypatch):
    monkeypatch.setattr(rounds, "monotonic", lambda: 12.5)
    assert [Effort(seconds, None, begun=10.0).is_spent for seconds in (2.0, 2.5, 3.0)] == [True, True, False]


def test_nodes_of_several_pieces_of_a_search_count_once(monkeypatch):
    """The search visits ten nodes in pieces of at most four."""
    state, asked = SimpleNamespace(counters=np.zeros(7, np.int64)), []

    def advance(problem, state, capacity, method, limit):
        asked.append(limit)
        state.counters[kernel.NODES] = limit
        return PAUSED

    monkeypatch.setattr(rounds, "CHUNK", 4)
    monkeypatch.setattr(rounds, "new_state", lambda *given: state)
    monkeypatch.setattr(kernel, "advance", advance)
    effort = Effort(None, 100, used=7)
    assert try_order(THREE, 5, SimpleNamespace(rank=0, method=0), 10, effort, np.ones(2)).is_open
    assert asked == [4, 8, 10] and effort.used == 17


def test_a_longer_trail_has_what_was_saved_at_its_beginning():
    state = new_state(THREE, np.arange(3), np.ones(2))
    state.trail[:] = np.arange(state.trail.size).reshape(state.trail.shape)
    longer = with_longer_trail(state)
    assert len(longer.trail) == 2 * len(state.trail) and longer.value is state.value
    np.testing.assert_array_equal(longer.trail[: len(state.trail)], state.trail)
