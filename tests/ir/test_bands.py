"""The turns of a loop of bands: which moves run, on which rows, and how many turns were left out before each."""

import pytest

from cgraph.ir.bands import BandBuffer, BandLoop, Event, Move

MOVES = tuple(
    Move(Event(*rows), at=at, slides=slides, workspace=8, room=16)
    for rows, at, slides in (
        ((0, 0, 4), 0, False),
        ((0, 4, 6), 32, False),
        ((1, 0, 3), 64, True),
        ((1, 3, 5), 0, False),
    )
)
LOOP = BandLoop(first=1, last=3, begin=(4, 0), shift=(2, 3), count=5)
BUFFER = BandBuffer(MOVES, 96, LOOP)


def rows(turns) -> list[tuple[int, int, int, int]]:
    return [(move.event.value, move.event.first, move.event.stop, omitted) for move, omitted in turns]


def test_without_a_loop_every_move_runs_once():
    assert list(BandBuffer(MOVES, 96).turns((0, 1))) == [(move, 0) for move in MOVES]


def test_each_turn_moves_the_rows_of_each_value_by_its_own_shift():
    assert rows(BUFFER.turns(range(5))) == [
        (0, 0, 4, 0),
        *((0, 4, 6, 0), (1, 0, 3, 0)),
        *((0, 6, 8, 0), (1, 3, 6, 0)),
        *((0, 8, 10, 0), (1, 6, 9, 0)),
        *((0, 10, 12, 0), (1, 9, 12, 0)),
        *((0, 12, 14, 0), (1, 12, 15, 0)),
        (1, 15, 17, 0),
    ]


def test_by_default_the_loop_runs_once_and_its_other_turns_are_omitted_before_what_follows():
    assert rows(BUFFER.turns()) == [(0, 0, 4, 0), (0, 4, 6, 0), (1, 0, 3, 0), (1, 3, 5, 4)]


def test_omitted_turns_count_from_where_they_lie():
    assert rows(BUFFER.turns((0, 1, 4))) == [
        (0, 0, 4, 0),
        *((0, 4, 6, 0), (1, 0, 3, 0)),
        *((0, 6, 8, 0), (1, 3, 6, 0)),
        *((0, 8, 10, 2), (1, 6, 9, 2)),
        (1, 9, 11, 2),
    ]


def test_a_move_that_is_further_down_lies_at_the_same_place():
    move = BUFFER.further(MOVES[2], 2)
    assert move == Move(Event(1, 6, 9), at=64, slides=True, workspace=8, room=16)
    assert BandBuffer(MOVES, 96).further(MOVES[2], 2) == MOVES[2]


@pytest.mark.parametrize("count, turns", [(1, (0,)), (2, (0, 1)), (3, (0, 1, 2)), (4, (0, 1, 3)), (9, (0, 1, 8))])
def test_checks_look_at_the_first_the_second_and_the_last_turn(count, turns):
    assert BandLoop(0, 1, (0,), (1,), count).checked_turns == turns
