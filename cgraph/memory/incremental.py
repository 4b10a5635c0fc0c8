"""Incremental evaluation: the steps that must run again when some Vars changed, computed from the plan.

After a run, the arena contains the values whose bytes no later step overwrote. Such a value need not be computed again
unless it depends on a changed Var. But computing other values may overwrite it before it is read: then its step must
run too, and so on until nothing is added. A loop has few states (sets of values in the arena), so the answers for the
latest states and sets of changed Vars are cached: at most MOST_ENTRIES, and fewer for long programs.

Bytes are handled in segments, between any two addresses where a value begins or ends. Arrays over segments say which
step wrote a segment last, and which step writes it first.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property

import numpy as np

from cgraph.memory.tables import Tables
from cgraph.record import Record
from cgraph.system.bounded_cache import Bounded, most_of

MOST_STEPS = 20_000  # number of steps beyond which every run is a full one, because the analysis may be quadratic
MOST_RUNS = 4  # number of runs until their states are the same: most settle after two
State = frozenset[int]
"""The values that the arena contains."""
FULL: State = frozenset((-1,))  # the state after a full run; computed when a later run is not full


class StepSelection(Record):
    """The steps to run (None: all of them) and the state after them (None: no value is valid)."""

    run: tuple[int, ...] | None
    after: State | None


EVERY_STEP = StepSelection(None, None)
"""Of a Function without incremental evaluation."""


class IncrementalPlan:
    """The answers for one Function. Changes: caches the latest answers, with the states and cones that they need.

    Fields
        count: number of steps
        states: one object for equal states, so that answers are found by identity
        cones: the steps that depend on a set of Vars
        tables: function that returns the plan's tables; called at first use, since large tables take time
    """

    def __init__(self, count: int, variables: Sequence[Hashable], tables: Callable[[], Tables]) -> None:
        self.count, self._make = count, tables
        self._number_of = {x: i for i, x in enumerate(variables)}
        most = most_of(count)
        self.states: Bounded[State, State] = Bounded(most)
        self.answers: Bounded[tuple[State, frozenset], StepSelection] = Bounded(most)
        self.cones: Bounded[frozenset, State] = Bounded(most)

    def steps(self, state: State | None, changed: frozenset) -> StepSelection:
        """Return the steps to run in this state when these Vars changed."""
        if state is None:
            return StepSelection(None, FULL if self.count <= MOST_STEPS else None)
        key = (state, changed)
        steps = self.answers.get(key)
        if steps is None:
            steps = self.answers.keep(key, self._solve(state, changed))
        return steps

    def runs_all(self, changed: frozenset) -> bool:
        """Return True if every step depends on one of these Vars."""
        return self.count <= MOST_STEPS and len(self._cone(changed)) == self.count

    def steady(self, changed: frozenset) -> StepSelection | None:
        """Return the steps of a run that leaves the state that it began in, after earlier runs with the same changes.

        None if the states of such runs do not settle within MOST_RUNS runs, or if there are too many steps.
        """
        if self.count > MOST_STEPS:
            return None
        state = FULL
        for _ in range(MOST_RUNS):
            steps = self.steps(state, changed)
            if steps.after is None or steps.after == state:
                return steps
            state = steps.after
        return None

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
        """Return the values that are valid in a state."""
        if state is None:
            return frozenset()
        return self._survivors(range(self.count), ()) if state is FULL else state

    def _cone(self, changed: frozenset) -> frozenset[int]:
        """Return the steps that depend on a changed Var or on an impure op."""
        cone = self.cones.get(changed)
        if cone is None:
            bits = 1 << len(self._number_of) | sum(1 << self._number_of[x] for x in changed)
            asked = np.frombuffer(bits.to_bytes(self.tables.depends.shape[1], "little"), np.uint8)
            cone = frozenset(np.flatnonzero((self.tables.depends & asked).any(1)).tolist())
            self.cones.keep(changed, cone)
        return cone

    # -- tables of the plan ------------------------------------------------------------------------------------------
    @cached_property
    def tables(self) -> Tables:
        return self._make()

    @cached_property
    def lasting(self) -> frozenset[int]:
        """Values that callers read after a run."""
        return frozenset(self.tables.lasting.tolist())

    @cached_property
    def reads(self) -> list[list[int]]:
        """For each step, the values that it reads."""
        return self.tables.reads.tolist()

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """For each value and workspace, its segments ``low..high`` (high excluded)."""
        return [(low, high) for low, high in self.tables.segments.tolist()]

    @cached_property
    def segment_count(self) -> int:
        return int(self.tables.segments.max(initial=-1)) + 1

    @cached_property
    def own(self) -> list[list[tuple[int, int]]]:
        """For each value, its segments without those of the parts made inside it."""
        spans = self.spans
        return [cut_out(span, sorted(spans[i] for i in parts)) for span, parts in zip(spans, self.parts)]

    @cached_property
    def parts(self) -> list[list[int]]:
        """For each value, the parts made inside it."""
        return self.tables.parts.tolist()

    @cached_property
    def written(self) -> list[list[tuple[int, int]]]:
        """For each step, the segments that it writes: its result, without the parts made in place, and its
        workspace.
        """
        workspaces = self.tables.workspace.tolist()
        return [own if w < 0 else [*own, self.spans[w]] for own, w in zip(self.own, workspaces)]

    # -- closure and survivors ---------------------------------------------------------------------------------------
    def _close(self, run: set[int], valid: frozenset[int]) -> set[int]:
        """Add steps until every value is valid when it is read, and every lasting value at the end."""
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
        """Return the values that are valid after these steps ran, when `held` were before."""
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
        for t in sorted(own):  # a part, which may have parts itself, comes before the value that contains it
            if alive.issuperset(self.parts[t]) and all((writer[low:high] == t).all() for low, high in own[t]):
                alive.add(t)
        return frozenset(alive)


def cut_out(span: tuple[int, int], holes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return a span without these spans, which are sorted and inside it."""
    left, at = [], span[0]
    for low, high in holes:
        if low > at:
            left.append((at, low))
        at = max(at, high)
    if span[1] > at:
        left.append((at, span[1]))
    return left
