"""Which steps must run again when some Vars changed: computed from the plan, not guessed from flags.

The bytes of the arena hold, after a run, those values that nothing written later overlaps. A value that is held and
does not depend on a changed Var need not be computed again. But computing others may overwrite it before it is read:
then it must run too, and so on until nothing is added. States (which values are held) are few in a loop, so the answer
for a state and a set of changed Vars is remembered.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cgraph.ir.graph import Node
from cgraph.memory.layout import owner_of

MOST_STEPS = 20_000  # beyond it every run is a full one: the analysis is quadratic
MOST_REMEMBERED = 256


@dataclass(frozen=True)
class Steps:
    """The steps to run (None: all of them) and the state they leave."""

    run: tuple[int, ...] | None
    after: int | None


class Recompute:
    """The answers for one Function. Changes: states and answers are remembered."""

    def __init__(self, compiled: Any) -> None:
        layout, usage, plan = compiled.layout, compiled.usage, compiled.plan
        self.layout = layout
        self.count = len(layout.steps)
        self.small = self.count <= MOST_STEPS
        at = np.array([usage.offset(plan, i) for i in range(len(layout.values))], np.int64)
        end = at + np.array([v.nbytes for v in layout.values], np.int64)
        self.low, self.high = at[: self.count], end[: self.count]
        self.regions = [[(at[t], end[t])] for t in range(self.count)]
        for node, i in layout.scratch_of.items():
            self.regions[layout.value_of[node]].append((at[i], end[i]))
        self.inside = usage.inside
        self.kept = frozenset(layout.value_of[owner_of(layout.views[n])] for n in self._ends(compiled))
        self.reads = [self._reads(n) for n in layout.steps]
        self.impure = frozenset(t for t, n in enumerate(layout.steps) if not n.op.pure)
        self.states: list[frozenset[int]] = []
        self.answers: dict[tuple[int | None, frozenset], Steps] = {}
        self.cones: dict[frozenset, frozenset[int]] = {}

    def _ends(self, compiled: Any) -> list[Node]:
        ends = (*compiled.outputs, *compiled.sources)
        return [n for n in ends if owner_of(self.layout.views[n]) in self.layout.value_of]

    def _reads(self, node: Node) -> tuple[int, ...]:
        owners = (owner_of(self.layout.views[x]) for x in node.operands)
        return tuple(dict.fromkeys(self.layout.value_of[o] for o in owners if o in self.layout.value_of))

    def steps(self, state: int | None, changed: frozenset) -> Steps:
        """What to run in this state when these Vars changed; state None holds nothing."""
        key = (state, changed)
        found = self.answers.get(key)
        if found is None:
            if len(self.answers) > MOST_REMEMBERED:
                self.answers.clear()
            found = self.answers[key] = self._solve(state, changed)
        return found

    def _solve(self, state: int | None, changed: frozenset) -> Steps:
        if not self.small:
            return Steps(None, None)
        held = frozenset() if state is None else self.states[state]
        cone = self._cone(changed)
        if state is None or len(cone) == self.count:
            return Steps(None, self._remember(self._survivors(range(self.count), frozenset())))
        run = self._close(set(cone) | (self.kept - held), held)
        order = tuple(sorted(run))
        return Steps(order, self._remember(self._survivors(order, held)))

    def _cone(self, changed: frozenset) -> frozenset[int]:
        """Steps that depend on a changed Var or on an impure op."""
        if changed not in self.cones:
            depends: set[Node] = set(changed)
            found = set()
            for node in self.layout.views:
                step = self.layout.value_of.get(node)
                if step in self.impure or any(x in depends for x in node.operands):
                    depends.add(node)
                    if step is not None:
                        found.add(step)
            self.cones[changed] = frozenset(found)
        return self.cones[changed]

    def _close(self, run: set[int], held: frozenset[int]) -> set[int]:
        """Add steps until every value that is read, and every value kept, is there when it is wanted."""
        while True:
            first_writer = self._first_writers(run)
            added = set()
            for t in run:
                for x in self.reads[t]:
                    if x not in run and (x not in held or first_writer[x] < t):
                        added.add(x)
            added.update(x for x in self.kept if x not in run and first_writer[x] < self.count)
            if not added:
                return run
            run |= added

    def _first_writers(self, run: set[int]) -> np.ndarray:
        """Per value, the first step of `run` that writes into its bytes without being part of it."""
        first = np.full(self.count, self.count, np.int64)
        for t in sorted(run, reverse=True):
            first[self._overlapped(t)] = t
        return first

    def _overlapped(self, t: int) -> np.ndarray:
        """Values whose bytes step t overwrites; not its own, its parts, or the result it is part of."""
        hit = np.zeros(self.count, bool)
        for low, high in self.regions[t]:
            hit |= (self.low < high) & (low < self.high)
        found = np.flatnonzero(hit)
        return np.array([x for x in found if x != t and not self._part_of(x, t) and not self._part_of(t, x)], np.int64)

    def _part_of(self, x: int, whole: int) -> bool:
        while x >= 0 and x != whole:
            x = self.inside[x]
        return x == whole

    def _survivors(self, order: Any, held: frozenset[int]) -> frozenset[int]:
        """Values held after these steps ran."""
        alive = np.zeros(self.count, bool)
        alive[list(held)] = True
        for t in order:
            alive[self._overlapped(t)] = False
            alive[t] = True
        return frozenset(np.flatnonzero(alive).tolist())

    def _remember(self, held: frozenset[int]) -> int:
        for i, known in enumerate(self.states):
            if known == held:
                return i
        self.states.append(held)
        return len(self.states) - 1
