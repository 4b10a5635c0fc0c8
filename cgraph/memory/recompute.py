"""Which steps must run again when some Vars changed: computed from the plan, not guessed from flags.

The bytes of the arena hold, after a run, those values that nothing written later overlaps. A value that is held and
does not depend on a changed Var need not be computed again. But computing others may overwrite it before it is read:
then it must run too, and so on until nothing is added. States (which values are held) are few in a loop, so the answer
for a state and a set of changed Vars is remembered.

Bytes are looked at in segments, between any two places where a value begins or ends: who wrote a segment last, and
which step writes it first, are arrays over segments.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from cgraph.ir.graph import Node
from cgraph.memory.layout import owner_of, producers_of
from cgraph.record import Record

MOST_STEPS = 20_000  # beyond it every run is a full one: the analysis may be quadratic
MOST_REMEMBERED = 256
FULL = -1  # the state after a full run; worked out only when a later run is not full


class Steps(Record):
    """The steps to run (None: all of them) and the state they leave (None: nothing is held)."""

    run: tuple[int, ...] | None
    after: int | None


class Recompute:
    """The answers for one Function. Changes: states and answers are remembered."""

    def __init__(self, compiled: Any) -> None:
        self.compiled, self.layout = compiled, compiled.layout
        self.count = len(self.layout.steps)
        self.states: list[frozenset[int]] = []
        self.answers: dict[tuple[int | None, frozenset], Steps] = {}
        self.cones: dict[frozenset, frozenset[int]] = {}

    def steps(self, state: int | None, changed: frozenset) -> Steps:
        """What to run in this state when these Vars changed."""
        if state is None:
            return Steps(None, FULL if self.count <= MOST_STEPS else None)
        key = (state, changed)
        found = self.answers.get(key)
        if found is None:
            if len(self.answers) > MOST_REMEMBERED:
                self.answers.clear()
            found = self.answers[key] = self._solve(state, changed)
        return found

    def _solve(self, state: int, changed: frozenset) -> Steps:
        cone = self._cone(changed)
        if len(cone) == self.count:
            return Steps(None, FULL)
        held = self._survivors(range(self.count), ()) if state == FULL else self.states[state]
        order = tuple(sorted(self._close(set(cone) | (self.kept - held), held)))
        return Steps(order, self._remember(self._survivors(order, held)))

    def _remember(self, held: frozenset[int]) -> int:
        if held not in self.states:
            self.states.append(held)
        return self.states.index(held)

    def _cone(self, changed: frozenset) -> frozenset[int]:
        """Steps that depend on a changed Var or on an impure op."""
        if changed not in self.cones:
            depends: set[Node] = set(changed)
            for node in self.layout.views:
                if not node.op.pure or any(x in depends for x in node.operands):
                    depends.add(node)
            self.cones[changed] = frozenset(i for n, i in self.layout.value_of.items() if n in depends)
        return self.cones[changed]

    # -- what the plan says ---------------------------------------------------------------------------------------
    @cached_property
    def kept(self) -> frozenset[int]:
        """Values that callers read after a run."""
        ends = (*self.compiled.outputs, *self.compiled.sources)
        owners = (owner_of(self.layout.views[n]) for n in ends)
        return frozenset(self.layout.value_of[o] for o in owners if o in self.layout.value_of)

    @cached_property
    def reads(self) -> list[tuple[int, ...]]:
        """Per step, the values it reads."""
        made = producers_of(self.layout.views, self.layout.value_of)
        steps = ((made[x] for x in node.operands) for node in self.layout.steps)
        return [tuple(dict.fromkeys(i for i in found if i >= 0)) for found in steps]

    @cached_property
    def parts(self) -> dict[int, list[int]]:
        """Values made inside a concat result, per result."""
        found: dict[int, list[int]] = {}
        for i, whole in enumerate(self.compiled.usage.inside):
            if whole >= 0:
                found.setdefault(whole, []).append(i)
        return found

    @cached_property
    def spans(self) -> tuple[list[tuple[int, int]], int]:
        """Per value and workspace its segments ``low..high`` (excluded), and how many segments there are."""
        usage, plan, values = self.compiled.usage, self.compiled.plan, self.layout.values
        low = [usage.offset(plan, i) for i in range(len(values))]
        edges = sorted({x for a, v in zip(low, values) for x in (a, a + v.nbytes)})
        at = {x: i for i, x in enumerate(edges)}
        return [(at[a], at[a + v.nbytes]) for a, v in zip(low, values)], len(edges)

    def _written(self, t: int) -> list[tuple[int, int]]:
        """Segments that step t writes: its result, less the parts made in place, and its workspace."""
        spans = self.spans[0]
        found = cut_out(spans[t], sorted(spans[i] for i in self.parts.get(t, ())))
        workspace = self.layout.workspace_of.get(self.layout.steps[t])
        return found if workspace is None else [*found, spans[workspace]]

    # -- the two questions ----------------------------------------------------------------------------------------
    def _close(self, run: set[int], held: frozenset[int]) -> set[int]:
        """Add steps until every value that is read, and every value kept, is there when it is wanted."""
        while True:
            first = np.full(self.spans[1], self.count, np.int64)
            for t in sorted(run, reverse=True):
                for low, high in self._written(t):
                    first[low:high] = t
            added = set()
            for t in run:
                for x in self.reads[t]:
                    if x not in run and (x not in held or self._first_writer(first, x) < t):
                        added.add(x)
            added.update(x for x in self.kept - run if self._first_writer(first, x) < self.count)
            if not added:
                return run
            run |= added

    def _first_writer(self, first: np.ndarray, x: int) -> int:
        low, high = self.spans[0][x]
        return int(first[low:high].min()) if high > low else self.count

    def _survivors(self, order: Iterable[int], held: Iterable[int]) -> frozenset[int]:
        """Values held after these steps ran, when `held` were before."""
        writer = np.full(self.spans[1], -1, np.int64)
        candidates = [*sorted(held), *order]
        own = {
            t: cut_out(self.spans[0][t], sorted(self.spans[0][i] for i in self.parts.get(t, ()))) for t in candidates
        }
        for t in sorted(held):
            for low, high in own[t]:
                writer[low:high] = t
        for t in order:
            for low, high in self._written(t):
                writer[low:high] = -1
            for low, high in own[t]:
                writer[low:high] = t
        alive = {t for t in own if all((writer[low:high] == t).all() for low, high in own[t])}
        return frozenset(t for t in alive if all(i in alive for i in self.parts.get(t, ())))


def cut_out(span: tuple[int, int], holes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What is left of a span without these, which are sorted and lie inside it."""
    found, at = [], span[0]
    for low, high in holes:
        if low > at:
            found.append((at, low))
        at = max(at, high)
    if span[1] > at:
        found.append((at, span[1]))
    return found
