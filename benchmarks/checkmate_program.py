"""The least extra work within some bytes as a mixed-integer program: Checkmate's problem, with our memory model.

Variables of stage t, in which node t runs for the first time: R[t, i]: node i runs; S[t, i]: its value is stored when
the stage begins. Nodes of a stage run in order; F[t, i, k]: the value of i is released when k has run. Bytes while k
runs are counted as in `cgraph.rematerialise.reruns`, with workspaces and with operands that a node overwrites. Besides
the paper's constraints there are some that every useful solution fulfils, without which HiGHS finds no bounds: a value
that stage t passes on is stored while node t runs; no node runs whose value is stored already, or is not read.

Source: Jain et al. 2020, Checkmate, arXiv:1910.02653, section 4.
"""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_matrix

from cgraph.record import Record, replace
from cgraph.rematerialise.reruns import Reruns
from cgraph.schedule.dag import Dag

Terms = list[tuple[int | None, float]]  # variables with factors; those that do not exist are omitted
GAP, TOLERANCE = 1e-3, 1e-6
NOTHING = 2  # the status of a program without solutions


class Optimum(Record):
    """The solver's result for the extra work: the best solution found, and a lower bound; None if there is none."""

    found: float | None
    bound: float | None

    @property
    def is_proved(self) -> bool:
        return self.found is not None and self.bound is not None and self.found - self.bound <= GAP * max(self.found, 1)


def in_order(problem: Reruns, order: Sequence[int]) -> Reruns:
    """Return the same problem with first runs in another order."""
    at = {i: t for t, i in enumerate(order)}
    dag = problem.dag
    moved = Dag(
        tuple(dag.nbytes[i] for i in order),
        tuple(tuple(at[x] for x in dag.operands[i]) for i in order),
        frozenset(at[i] for i in dag.lasting),
        tuple(dag.workspaces[i] for i in order),
        tuple(tuple(at[x] for x in dag.overwritable[i]) for i in order),
    )
    until = [problem.until[i] for i in order]
    stops = tuple(at.get(stop, len(order)) for stop in until)
    return replace(problem, dag=moved, cost=tuple(problem.cost[i] for i in order), until=stops, firm=frozenset())


def optimum(problem: Reruns, most: int, seconds: float, known: float = np.inf) -> Optimum:
    """Return the least extra work within `most` bytes, as far as the solver gets, among solutions that cost at most
    `known`.
    """
    program = Program(problem, most)
    if known < np.inf:
        costs: Terms = [(i, column[0]) for i, column in enumerate(program.columns) if column[0]]
        program.limit(costs, (known + problem.own) / program.unit * (1 + TOLERANCE))
    found = program.solved(seconds)
    unit, own = program.unit, problem.own
    best = None if found.x is None else found.fun * unit - own
    bound = None if found.mip_dual_bound is None else found.mip_dual_bound * unit - own
    if found.status == NOTHING:
        bound = known
    return Optimum(best, bound)


class Program:
    """The program. Changes: variables and constraints are added. Bytes are in units of `most`, work in `unit`."""

    def __init__(self, problem: Reruns, most: int) -> None:
        self.problem, self.dag, self.count = problem, problem.dag, len(problem.cost)
        self.unit = max(problem.cost)
        self.nbytes = [n / most for n in self.dag.nbytes]
        self.scratch = [n / most for n in self.dag.workspaces]
        self.at: dict[tuple, int] = {}
        self.columns: list[tuple[float, float, float, int]] = []  # cost, low, high, is an integer
        self.entries: list[tuple[int, int, float]] = []
        self.highs: list[float] = []
        self.add_runs()
        for t in range(self.count):
            self.add_reads(t)
            self.add_what_holds(t)
            self.add_bytes(t)

    def solved(self, seconds: float):
        """Return the solver's result."""
        cost, low, high, integers = (np.array(column) for column in zip(*self.columns))
        rows, columns, factors = zip(*self.entries)
        matrix = coo_matrix((factors, (rows, columns)), (len(self.highs), len(self.columns))).tocsr()
        constraints = LinearConstraint(matrix, -np.inf, np.array(self.highs))
        options = {"time_limit": seconds, "mip_rel_gap": GAP / 2}
        return milp(cost, integrality=integers, bounds=Bounds(low, high), constraints=constraints, options=options)

    def var(self, key: tuple, cost: float = 0, low: float = 0, high: float = 1, integer: int = 1) -> int:
        self.at[key] = len(self.columns)
        self.columns.append((cost, low, high, integer))
        return self.at[key]

    def limit(self, terms: Terms, high: float) -> None:
        """Require the sum of the terms to be at most `high`."""
        self.entries += [(len(self.highs), column, factor) for column, factor in terms if column is not None]
        self.highs.append(high)

    def run(self, t: int, i: int) -> int | None:
        return self.at.get(("R", t, i))

    def there(self, t: int, i: int) -> int | None:
        return self.at.get(("S", t, i))

    # -- variables and constraints ---------------------------------------------------------------------------------
    def add_runs(self) -> None:
        """Add R and S where they can matter: the value is read at this stage or later, or by a node that may run
        again.
        """
        users, until, kept = self.dag.users, self.problem.until, self.dag.lasting
        for t in range(self.count):
            useful = [False] * (t + 1)
            for i in range(t, -1, -1):
                useful[i] = any(u >= t or (until[u] >= t and until[u] > u and useful[u]) for u in users[i])
                if i == t or (useful[i] and until[i] >= t and until[i] > i):
                    self.var(("R", t, i), self.problem.cost[i] / self.unit, float(i == t))
                if i < t and (useful[i] or i in kept):
                    self.var(("S", t, i), 0, float(i in kept))
        for i in kept:
            self.var(("S", self.count, i), 0, 1)

    def add_reads(self, t: int) -> None:
        """Require operands to run in the stage or be stored; stored values have run or were stored in the stage
        before.
        """
        for i in range(t + 1):
            if self.run(t, i) is not None:
                for x in self.dag.distinct[i]:
                    self.limit([(self.run(t, i), 1), (self.run(t, x), -1), (self.there(t, x), -1)], 0)
            if i < t and self.there(t, i) is not None:
                self.limit([(self.there(t, i), 1), (self.run(t - 1, i), -1), (self.there(t - 1, i), -1)], 0)

    def add_what_holds(self, t: int) -> None:
        """Add constraints that every useful solution fulfils."""
        users, read = self.dag.users, self.dag.distinct[t]
        for i in range(t):
            if self.run(t, i) is not None:
                self.limit([(self.run(t, i), 1), (self.there(t, i), 1)], 1)
                readers: Terms = [(self.run(t, u), -1) for u in users[i] if u <= t]
                self.limit([(self.run(t, i), 1), *readers, (self.there(t + 1, i), -1)], 0)
        waits: Terms = [(self.there(t + 1, i), self.nbytes[i]) for i in range(t) if i not in read]
        used = sum(self.nbytes[x] for x in read) + self.scratch[t] + self.nbytes[t]
        reused = min(sum(self.nbytes[x] for x in self.dag.overwritable[t]), self.nbytes[t])
        self.limit(waits, 1 - used + reused)
        if len(self.dag.overwritable[t]) == 1:
            (x,) = self.dag.overwritable[t]
            if self.nbytes[x] <= self.nbytes[t]:
                self.limit([*waits, (self.there(t + 1, x), self.nbytes[x])], 1 - used + reused)

    def add_bytes(self, t: int) -> None:
        """Add the bytes in use while each node of a stage runs."""
        in_use: Terms = [(self.there(t, i), self.nbytes[i]) for i in range(t)]
        for k in range(t + 1):
            run = self.run(t, k)
            if run is None:
                continue
            given_up = {i: self.gives_up(t, i, k) for i in (*self.dag.distinct[k], k) if i not in self.dag.lasting}
            taken = self.taken(t, k, given_up)
            self.limit([*in_use, (run, self.nbytes[k] + self.scratch[k]), (taken, -1)], 1)
            after = self.var(("U", t, k), high=np.inf, integer=0)
            freed: Terms = [(given_up[i], -self.nbytes[i]) for i in given_up]
            self.limit([*in_use, (run, self.nbytes[k]), *freed, (after, -1)], 0)
            in_use = [(after, 1)]

    def gives_up(self, t: int, i: int, k: int) -> int:
        """Add F: only where k runs, no later node of the stage reads the value, and the next stage does not store
        it.
        """
        given_up = self.var(("F", t, i, k), integer=0)
        self.limit([(given_up, 1), (self.run(t, k), -1)], 0)
        for blocker in (self.there(t + 1, i), *(self.run(t, u) for u in self.dag.users[i] if k < u <= t)):
            if blocker is not None:
                self.limit([(given_up, 1), (blocker, 1)], 1)
        return given_up

    def taken(self, t: int, k: int, given_up: dict[int, int]) -> int | None:
        """Return the bytes of operands that k overwrites, since it reads them last."""
        takes = [x for x in self.dag.overwritable[k] if x in given_up]
        if not takes or not self.nbytes[k]:
            return None
        taken = self.var(("T", t, k), high=self.nbytes[k], integer=0)
        self.limit([(taken, 1), (self.run(t, k), -self.nbytes[k])], 0)
        self.limit([(taken, 1), *((given_up[x], -self.nbytes[x]) for x in takes)], 0)
        return taken
