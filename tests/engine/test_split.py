"""The division of a budget between arena and ring: which sizes are tried, and that the size of a refusal works."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from cgraph.engine.cpu import split
from cgraph.engine.cpu.code import Piece
from cgraph.engine.cpu.ring import placement_in
from cgraph.engine.cpu.split import Split, share_budget
from cgraph.errors import BudgetError
from cgraph.ops.leaf import HASHED_NBYTES
from cgraph.planning.options import CompileOptions
from cgraph.record import replace
from cgraph.storage.weight_file import PAGE, StreamedWeights, pages

MIB = 1 << 20
CONSTANTS = 1000


def split_with(arena, *rows):
    """A plan with an arena of so many bytes, and pieces of so many pages with their first and last rows."""
    pieces = [Piece(i, i * MIB, n * PAGE, first, last) for i, (n, first, last) in enumerate(rows)]
    return Split(SimpleNamespace(nbytes=arena), pieces, CONSTANTS)


class Planner:
    """Plans whose arena is between two sizes, with three slices of a third of the ring. Changes: what was asked."""

    def __init__(self, least, most):
        self.least, self.most, self.asked = least, most, []

    def __call__(self, ring, budget):
        self.asked.append((ring, budget))
        arena = self.most if budget is None else max(self.least, min(self.most, budget))
        slices = pages(ring // 3) // PAGE
        return split_with(arena, *((slices, i, i) for i in range(3)))


def test_a_ring_is_as_large_as_the_pieces_or_the_room_but_works():
    chain = split_with(500, (2, 0, 0), (1, 1, 1), (2, 2, 2), (1, 3, 3))
    assert chain.nbytes == 500 + CONSTANTS
    rooms = (100 * PAGE, 6 * PAGE - 1, 4 * PAGE + 5, PAGE, 0)
    assert [chain.ring(room) // PAGE for room in rooms] == [6, 5, 4, 2, 2]
    assert split_with(0).ring(0) == PAGE


def test_a_ring_in_whose_size_pieces_would_overlap_is_made_smaller():
    rows = split_with(0, (4, 0, 0), (3, 1, 2), (2, 2, 3), (2, 3, 4), (4, 4, 5))
    assert [n for n in range(5, 10) if placement_in(rows.pieces, n * PAGE) is not None] == [6, 8, 9]
    assert [rows.ring(n * PAGE) // PAGE for n in (5, 6, 7, 8)] == [6, 6, 6, 8]


def test_without_a_budget_the_ring_is_three_slices_or_as_requested():
    planner = Planner(6 * MIB, 10 * MIB)
    assert share_budget(StreamedWeights("w"), None, planner)[1] == 12 * MIB
    assert share_budget(StreamedWeights("w", slice=MIB), None, planner)[1] == 3 * MIB
    assert share_budget(StreamedWeights("w", ring=5 * MIB + 1), None, planner)[1] == 5 * MIB + PAGE
    assert planner.asked == [(12 * MIB, None), (3 * MIB, None), (5 * MIB + PAGE, None)]


def test_a_slice_larger_than_the_ring_of_three_raises_it():
    def one_large(ring, budget):
        return split_with(MIB, (ring // PAGE + 7, 0, 0))

    assert share_budget(StreamedWeights("w", slice=MIB), None, one_large)[1] == 3 * MIB + 7 * PAGE
    with pytest.raises(BudgetError, match="the ring of 3 MiB .* it needs 3.03 MiB"):
        share_budget(StreamedWeights("w", ring=3 * MIB), None, one_large)


def test_what_a_budget_leaves_beside_the_arena_is_the_ring():
    def long(ring, budget):
        return split_with(10 * MIB, *((256, i, i) for i in range(100)))

    best, ring = share_budget(StreamedWeights("w"), 30 * MIB + CONSTANTS, long)
    assert best.compiled.nbytes == 10 * MIB and ring == 20 * MIB
    assert share_budget(StreamedWeights("w", ring=MIB), 30 * MIB + CONSTANTS, long)[1] == MIB


def test_first_the_arena_shrinks_then_the_ring():
    weights, planner = StreamedWeights("w"), Planner(6 * MIB, 10 * MIB)
    best, ring = share_budget(weights, 20 * MIB, planner)
    assert planner.asked == [(12 * MIB, None), (12 * MIB, 8 * MIB)]
    assert best.compiled.nbytes == 8 * MIB and ring == 12 * MIB - PAGE  # the constants take a page of it
    planner = Planner(6 * MIB, 10 * MIB)
    best, ring = share_budget(weights, 9 * MIB, planner)
    assert planner.asked == [(12 * MIB, None), (3 * MIB, 6 * MIB)] and best.compiled.nbytes == 6 * MIB
    planner = Planner(6 * MIB, 10 * MIB)
    share_budget(weights, 6 * MIB + 16 * HASHED_NBYTES, planner)
    assert [ring for ring, _ in planner.asked] == [12 * MIB, 3 * MIB, 6 * HASHED_NBYTES]


@pytest.mark.parametrize("budget", [None, 5 * MIB])
def test_a_plan_beside_a_ring_has_its_own_budget_and_slices_for_that_ring(monkeypatch, budget):
    """The pieces are the large constants; the others, and those that no piece has, stay in memory."""
    asked, large, small = [], np.zeros(7, "u1"), np.zeros(3, "u1")
    request = SimpleNamespace(roots="roots", of=lambda roots: SimpleNamespace(roots=roots))
    monkeypatch.setattr(split, "slice_constants", lambda *args: args)
    monkeypatch.setattr(split, "slice_nbytes", lambda weights, ring: (weights.path, ring))
    monkeypatch.setattr(split, "large_constants", lambda roots: [SimpleNamespace(op=SimpleNamespace(array=large))])
    monkeypatch.setattr(split, "pieces_of", lambda code, place: [code, place(large), place(small), place(large.copy())])
    monkeypatch.setattr(split, "resident_constants", lambda code, pieces: [small, small])
    options = CompileOptions(weights=StreamedWeights("w"), budget=9 * MIB, winograd=False)
    made = split.split_of(
        request, options, lambda *given: asked.append(given) or "plan", lambda plan: (plan, "code"), "keep", MIB, budget
    )
    ((cut, given),) = asked
    assert cut.roots == ("roots", ("w", MIB), "keep")
    assert given == replace(options, budget=budget)
    assert (made.compiled, made.pieces, made.constants_nbytes) == ("plan", [("plan", "code"), 0, None, None], 6)


@pytest.mark.parametrize("most", [None, 99, 100, 101])
@pytest.mark.parametrize("large", [[], ["a constant"]])
def test_a_streamed_plan_is_refused_beyond_the_bytes_that_recompute_allows(monkeypatch, large, most):
    """Of a plan that is not, the large constants go to the file, for the ring beside it."""
    compiled = SimpleNamespace(nbytes=100, outputs=("y",), sources=("s",))
    asked = []
    monkeypatch.setattr(split, "share_budget", lambda *given: asked.append(given) or (Split(compiled, [], 7), 3 * MIB))
    monkeypatch.setattr(split, "large_constants", lambda roots: large if roots == ("y", "s") else None)
    monkeypatch.setattr(split, "weights_on_disk", lambda large, weights: (large, weights.ring_nbytes))
    monkeypatch.setattr(split, "with_constants", lambda *given: given)
    options = CompileOptions(weights=StreamedWeights("w"), budget=9 * MIB, recompute=most)
    if most == 99:
        with pytest.raises(BudgetError, match="needs 100 bytes, recompute= allows 99"):
            split.plan_streamed(None, options, None, None, None)
        return
    made = split.plan_streamed(None, options, None, None, None)
    assert made == ((compiled, (large, 3 * MIB)) if large else compiled)
    assert asked[0][:2] == (options.weights, 9 * MIB)


@pytest.mark.parametrize("weights", [StreamedWeights("w"), StreamedWeights("w", ring=2 * MIB)])
def test_the_size_that_a_refusal_names_works_and_one_byte_less_does_not(weights):
    planner = Planner(6 * MIB, 10 * MIB)
    with pytest.raises(BudgetError) as caught:
        share_budget(weights, MIB, planner)
    least = int(re.search(r"least budget of this graph is (\d+) bytes", str(caught.value))[1])
    best, ring = share_budget(weights, least, planner)
    assert best.nbytes + ring <= least
    ring_nbytes = 2 * MIB if weights.ring else pages(2 * HASHED_NBYTES)
    assert least == 6 * MIB + CONSTANTS + ring_nbytes
    with pytest.raises(BudgetError, match="1 bytes are missing"):
        share_budget(weights, least - 1, planner)


@pytest.mark.parametrize("missing", [0, 1])
def test_a_budget_of_exactly_arena_ring_and_constants_needs_no_smaller_plan(missing):
    planner = Planner(6 * MIB, 10 * MIB)
    best, ring = share_budget(StreamedWeights("w"), 22 * MIB + CONSTANTS - missing, planner)
    assert len(planner.asked) == 1 + missing
    assert (best.compiled.nbytes, ring) == (10 * MIB, 12 * MIB) or missing


def test_a_smaller_arena_beside_the_same_ring_may_fill_the_budget():
    weights, planner = StreamedWeights("w", slice=MIB), Planner(6 * MIB, 10 * MIB)
    best, ring = share_budget(weights, 7 * MIB + CONSTANTS, planner)
    assert planner.asked == [(3 * MIB, None), (3 * MIB, 4 * MIB + CONSTANTS)]
    assert (best.compiled.nbytes, ring) == (6 * MIB, MIB)
