"""Division of a budget between an arena and a ring of weights; the weight file is written when both fit.

The total of a run counts: arena, ring, and constants that stay in memory. A ring of three slices hides the disk nearly
as well as a larger one, so it is reserved first, then the arena at full size; the rest goes to the ring. If both do not
fit, the arena shrinks first (which costs extra calls), then the ring (which costs waiting). Layers whose filters are
sliced are not computed in bands of rows, because every band would read the filters again; filters of bands stay in
memory. The smallest total therefore depends on the slice size, and a few sizes are tried. A budget is refused only if
it is below the smallest plan of all of them, so the size that a refusal names always works. Nothing is written before
everything fits.
"""

from collections.abc import Callable, Sequence
from functools import partial

from cgraph.budget.budget import recompute_nbytes
from cgraph.budget.refusal import recompute_refusal, streamed_refusal
from cgraph.engine.cpu.code import Code, Piece
from cgraph.engine.cpu.ring import least_ring, pieces_of, place_pieces, placement_in, resident_constants
from cgraph.kernels.mapped import Keep
from cgraph.passes.weights_on_disk import SLICE, SLICES, large_constants, slice_constants, slice_nbytes, weights_on_disk
from cgraph.planning.compiled import Compiled, with_constants
from cgraph.planning.options import CompileOptions, Request
from cgraph.record import Record, replace
from cgraph.storage.weight_file import PAGE, StreamedWeights, pages

QUARTER = 4  # growth of a ring from one try to the next

Plan = Callable[[Request, CompileOptions], Compiled]
MakeCode = Callable[[Compiled], Code]


class Split(Record):
    """A plan and the memory that a run needs in addition to its arena.

    Fields
        pieces: the weights that go through the ring
        constants_nbytes: bytes of constants that stay in memory
    """

    compiled: Compiled
    pieces: Sequence[Piece]
    constants_nbytes: int

    @property
    def nbytes(self) -> int:
        """Bytes without the ring."""
        return self.compiled.nbytes + self.constants_nbytes

    def ring(self, room: int) -> int:
        """Return the largest useful ring of at most `room` bytes, but at least the smallest ring that works."""
        nbytes = min(room // PAGE * PAGE, sum(p.nbytes for p in self.pieces))
        least = least_ring(self.pieces)
        while nbytes > least and placement_in(self.pieces, nbytes) is None:
            nbytes -= PAGE
        return max(nbytes, least, PAGE)


def plan_streamed(request: Request, options: CompileOptions, plan: Plan, make_code: MakeCode, keep: Keep) -> Compiled:
    """Plan a graph whose large constants lie in its weight file.

    Parameters
        plan: returns the plan within a budget, or else the smallest one
        make_code: returns the code of a plan
        keep: stores slices that are not contiguous
    Raises
        BudgetError: arena, ring and constants in memory exceed the budget, or the ring is too small
    """
    weights = options.weights
    assert weights is not None
    split = partial(split_of, request, options, plan, make_code, keep)
    best, ring = share_budget(weights, options.budget, split)
    compiled, most = best.compiled, recompute_nbytes(options.recompute)
    if most is not None and compiled.nbytes > most:
        raise recompute_refusal(compiled.nbytes, most)
    large = large_constants((*compiled.outputs, *compiled.sources))
    if not large:
        return compiled
    return with_constants(compiled, weights_on_disk(large, weights.with_ring(ring)))


def split_of(
    request: Request,
    options: CompileOptions,
    plan: Plan,
    make_code: MakeCode,
    keep: Keep,
    ring: int,
    budget: int | None,
) -> Split:
    """Return a plan with slices for a ring of this size; its arena is within the budget if possible."""
    assert options.weights is not None
    cut = request.of(slice_constants(request.roots, slice_nbytes(options.weights, ring), keep))
    compiled = plan(cut, replace(options, budget=budget))
    code = make_code(compiled)
    large = {id(x.op.array) for x in large_constants(cut.roots)}  # type: ignore[attr-defined]
    pieces = pieces_of(code, lambda array: 0 if id(array) in large else None)
    return Split(compiled, pieces, sum(x.nbytes for x in resident_constants(code, pieces)))


def share_budget(
    weights: StreamedWeights, budget: int | None, split: Callable[[int, int | None], Split]
) -> tuple[Split, int]:
    """Return a plan, and the bytes of the ring beside it."""
    ring_nbytes = pages(weights.ring_nbytes or SLICES * (weights.slice_nbytes or SLICE))
    candidate = split(ring_nbytes, None)
    if weights.ring_nbytes is not None:
        place_pieces(candidate.pieces, ring_nbytes)
    if budget is None:
        return candidate, ring_nbytes if weights.ring_nbytes else max(ring_nbytes, candidate.ring(ring_nbytes))
    if candidate.nbytes + ring_nbytes > budget:
        candidate = shrink_to_fit(weights, budget, ring_nbytes, split)
    return candidate, ring_nbytes if weights.ring_nbytes else candidate.ring(budget - candidate.nbytes)


def shrink_to_fit(
    weights: StreamedWeights, budget: int, ring_nbytes: int, split: Callable[[int, int | None], Split]
) -> Split:
    """Return a plan with a smaller arena, or for a smaller ring."""

    def total(candidate: Split) -> int:
        return candidate.nbytes + (ring_nbytes if weights.ring_nbytes else least_ring(candidate.pieces))

    rings = (
        (ring_nbytes,)
        if weights.ring_nbytes
        else (ring_nbytes, ring_nbytes // QUARTER, SLICES * slice_nbytes(weights, 0))
    )
    smallest: dict[int, Split] = {}
    for ring in rings:
        if ring < budget:
            candidate = split(ring, budget - ring)
            if total(candidate) <= budget:
                return candidate
            if candidate.compiled.nbytes > budget - ring:
                smallest[ring] = candidate
    best = min((smallest.get(ring) or split(ring, 0) for ring in rings), key=total)
    if total(best) > budget:
        raise streamed_refusal(best.compiled.nbytes, total(best) - best.nbytes, best.constants_nbytes, budget)
    return best
