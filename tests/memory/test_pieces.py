"""Values that overlap for one step, as pieces: their steps, bytes, distances, and the operand of each value."""

from cgraph.memory.pieces import Above, Span, pieces_of
from cgraph.memory.problem import ProblemOperand, Tie, UsageInterval


def operand(name, nbytes, first, last):
    return ProblemOperand(nbytes, UsageInterval(first, last), name)


def test_a_span_that_overlaps_no_other_is_one_operand_that_may_lie_anywhere():
    operands, place, ties = pieces_of({3: Span("a", 8, 0, 2), 1: Span("b", 0, 2, 2)}, {})
    assert operands == [operand("a", 8, 0, 2), operand("b", 0, 2, 2)] and place == {3: 0, 1: 1} and ties == ()


def test_two_that_overlap_are_cut_at_the_step_that_they_share():
    """`b` begins 16 bytes behind the beginning of `a`, of which 84 bytes from there on are still read."""
    spans = {0: Span("a", 100, 0, 3), 1: Span("b", 60, 3, 6)}
    operands, place, ties = pieces_of(spans, {1: Above(0, -16, 84)})
    assert operands == [operand("a", 100, 0, 2), operand("b over a", 84, 3, 3), operand("b", 60, 4, 6)]
    assert place == {0: 0, 1: 2} and ties == ((Tie(0, 0), Tie(1, 16), Tie(2, 16)),)


def test_at_the_shared_step_the_larger_end_counts():
    spans = {0: Span("a", 8, 0, 3), 1: Span("b", 60, 3, 6)}
    operands, _, ties = pieces_of(spans, {1: Above(0, 4, 12)})
    assert [x.nbytes for x in operands] == [8, 60, 60] and [x.at for x in ties[0]] == [0, -4, -4]


def test_distances_of_a_chain_add_up_from_its_first_span():
    spans = {0: Span("a", 64, 0, 1), 1: Span("b", 64, 1, 4), 2: Span("c", 64, 4, 4), 5: Span("d", 7, 0, 9)}
    operands, place, ties = pieces_of(spans, {1: Above(0, 16, 80), 2: Above(1, -48, 16)})
    assert [(x.name, x.interval.first, x.interval.last) for x in operands] == [
        ("a", 0, 0), ("b over a", 1, 1), ("b", 2, 3), ("c over b", 4, 4), ("d", 0, 9),
    ]  # fmt: skip
    assert ties == ((Tie(0, 0), Tie(1, -16), Tie(2, -16), Tie(3, 32)),)
    assert place == {0: 0, 1: 2, 2: 3, 5: 4}


def test_a_span_without_steps_of_its_own_has_the_place_of_the_shared_piece():
    """`b` is computed over `a`, and `c` over `b` at the next step."""
    spans = {0: Span("a", 8, 0, 1), 1: Span("b", 8, 1, 2), 2: Span("c", 8, 2, 3)}
    operands, place, _ = pieces_of(spans, {1: Above(0, 0, 8), 2: Above(1, 0, 8)})
    assert [x.name for x in operands] == ["a", "b over a", "c over b", "c"] and place == {0: 0, 1: 1, 2: 3}


def test_chains_keep_their_distances_apart_from_one_another():
    spans = {0: Span("a", 8, 0, 1), 1: Span("b", 8, 0, 2), 2: Span("c", 8, 1, 3), 3: Span("d", 8, 2, 4)}
    _, place, ties = pieces_of(spans, {2: Above(0, 4, 4), 3: Above(1, -4, 12)})
    assert ties == ((Tie(0, 0), Tie(2, -4), Tie(3, -4)), (Tie(1, 0), Tie(4, 4), Tie(5, 4)))
    assert place == {0: 0, 1: 1, 2: 3, 3: 5}
