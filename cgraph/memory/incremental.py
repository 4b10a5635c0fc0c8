"""Which steps must run again when some Vars changed: computed from the plan, not guessed from flags.

The bytes of the arena hold, after a run, those values that nothing written later overlaps. A value that is held and
does not depend on a changed Var need not be computed again. But computing others may overwrite it before it is read:
then it must run too, and so on until nothing is added. States (which values are held) are few in a loop, so the answers
for the latest states and sets of changed Vars are remembered: at most MOST_ENTRIES, and fewer of long programs.

Bytes are looked at in segments, between any two places where a value begins or ends: who wrote a segment last, and
which step writes it first, are arrays over segments.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property

import numpy as np

from cgraph.memory.tables import Tables
from cgraph.record import Record
from cgraph.system.bounded_cache import Bounded, most_of

MOST_STEPS = 20_000  # beyond it every run is a full one: the analysis may be quadratic
State = frozenset[int]
"""Which values the arena holds."""
FULL: State = frozenset((-1,))  # the state after a full run; worked out only when a later run is not full


class StepSelection(Record):
    """The steps to run (None: all of them) and the state they leave (None: nothing is held)."""

    run: tuple[int, ...] | None
    after: State | None


class IncrementalPlan:
    """The answers for one Function. Changes: the latest answers are remembered, with the states and cones they need.

    Fields
        count: steps
        states: one object for equal states, so that answers are found by identity
        cones: the steps that depend on a set of Vars
        tables: makes the plan's tables, when they are first asked for: large ones take a while
    """

    def __init__(self, count: int, variables: Sequence[Hashable], tables: Callable[[], Tables]) -> None:
        self.count, self._make = count, tables
        self._number_of = {x: i for i, x in enumerate(variables)}
        most = most_of(count)
        self.states: Bounded[State, State] = Bounded(most)
        self.answers: Bounded[tuple[State, frozenset], StepSelection] = Bounded(most)
        self.cones: Bounded[frozenset, State] = Bounded(most)

    def steps(self, state: State | None, changed: frozenset) -> StepSelection:
        """What to run in this state when these Vars changed."""
        if state is None:
            return StepSelection(None, FULL if self.count <= MOST_STEPS else None)
        key = (state, changed)
        steps = self.answers.get(key)
        if steps is None:
            steps = self.answers.keep(key, self._solve(state, changed))
        return steps

    def _solve(self, state: State, changed: frozenset) -> StepSelection:
        cone = self._cone(changed)
        if len(cone) == self.count:
            return StepSelection(None, FULL)
        valid = self.valid_values(state)
        order = tuple(sorted(self._close(set(cone) | (self.lasting - valid), valid)))
        after = self._survivors(order, valid)
        state_after = self.states.get(after)
        return StepSelection(order, self.states.keep(after, after) if state_after is None else state_after)

    def valid_values(self, state: State | None) -> frozenset[int]:
        """Values that are there in a state."""
        if state is None:
            return frozenset()
        return self._survivors(range(self.count), ()) if state is FULL else state

    def _cone(self, changed: frozenset) -> frozenset[int]:
        """Steps that depend on a changed Var or on an impure op."""
        cone = self.cones.get(changed)
        if cone is None:
            bits = 1 << len(self._number_of) | sum(1 << self._number_of[x] for x in changed)
            asked = np.frombuffer(bits.to_bytes(self.tables.depends.shape[1], "little"), np.uint8)
            cone = frozenset(np.flatnonzero((self.tables.depends & asked).any(1)).tolist())
            self.cones.keep(changed, cone)
        return cone

    # -- what the plan says ---------------------------------------------------------------------------------------
    @cached_property
    def tables(self) -> Tables:
        return self._make()

    @cached_property
    def lasting(self) -> frozenset[int]:
        """Values that callers read after a run."""
        return frozenset(self.tables.lasting.tolist())

    @cached_property
    def reads(self) -> list[list[int]]:
        """Per step, the values it reads."""
        return self.tables.reads.tolist()

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """Per value and workspace its segments ``low..high`` (excluded)."""
        return [(low, high) for low, high in self.tables.segments.tolist()]

    @cached_property
    def segment_count(self) -> int:
        return int(self.tables.segments.max(initial=-1)) + 1

    @cached_property
    def own(self) -> list[list[tuple[int, int]]]:
        """Per value its segments, less those of the parts made inside it."""
        spans = self.spans
        return [cut_out(span, sorted(spans[i] for i in parts)) for span, parts in zip(spans, self.parts)]

    @cached_property
    def parts(self) -> list[list[int]]:
        """Per value, those made inside it."""
        return self.tables.parts.tolist()

    @cached_property
    def written(self) -> list[list[tuple[int, int]]]:
        """Per step, the segments that it writes: its result, less the parts made in place, and its workspace."""
        workspaces = self.tables.workspace.tolist()
        return [own if w < 0 else [*own, self.spans[w]] for own, w in zip(self.own, workspaces)]

    # -- the two questions ----------------------------------------------------------------------------------------
    def _close(self, run: set[int], valid: frozenset[int]) -> set[int]:
        """Add steps until every value that is read, and every value kept, is there when it is wanted."""
        while True:
            first = np.full(self.segment_count, self.count, np.int64)
            for t in sorted(run, reverse=True):
                for low, high in self.written[t]:
                    first[low:high] = t
            added = set()
            for t in run:
                for x in self.reads[t]:
                    if x not in run and (x not in valid or self._first_writer(first, x) < t):
                        added.add(x)
            added.update(x for x in self.lasting - run if self._first_writer(first, x) < self.count)
            if not added:
                return run
            run |= added

    def _first_writer(self, first: np.ndarray, x: int) -> int:
        low, high = self.spans[x]
        return int(first[low:high].min()) if high > low else self.count

    def _survivors(self, order: Iterable[int], valid: Iterable[int]) -> frozenset[int]:
        """Values held after these steps ran, when `held` were before."""
        writer = np.full(self.segment_count, -1, np.int64)
        own = {t: self.own[t] for t in (*valid, *order)}
        for t in sorted(valid):
            for low, high in own[t]:
                writer[low:high] = t
        for t in order:
            for low, high in self.written[t]:
                writer[low:high] = -1
            for low, high in own[t]:
                writer[low:high] = t
        alive: set[int] = set()
        for t in sorted(own):  # a part, which may have parts itself, comes before what it lies in
            if alive.issuperset(self.parts[t]) and all((writer[low:high] == t).all() for low, high in own[t]):
                alive.add(t)
        return frozenset(alive)


def cut_out(span: tuple[int, int], holes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What is left of a span without these, which are sorted and lie inside it."""
    left, at = [], span[0]
    for low, high in holes:
        if low > at:
            left.append((at, low))
        at = max(at, high)
    if span[1] > at:
        left.append((at, span[1]))
    return left
