"""A cluster of lists in place of dask: what workers are told, and how each of them fares, is written down.

A member holds a step and a weight that depends on the step alone, so every training has the same results, whatever
happens to whom.
"""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cgraph.dist.limits import Limits
from nn.parallel import coordinator as crew_module
from nn.parallel.coordinator import Coordinator
from nn.parallel.messages import Job, StepOrder, StepReport, WorkerReady
from nn.parallel.worker import carry_out, prepare, take_state

FACTS = ("1.0", "avx2")
LIMITS = Limits(silence=1.0, answer=3.0, step=50.0, gather=20.0, round=3.0)
TICK = 0.1  # seconds that pass whenever the client waits
Fate = Callable[["Cluster", "Fake", StepOrder], None]


def weight(step: int) -> int:
    """What a member holds after so many steps."""
    found = 1
    for i in range(step):
        found = (found * 31 + i) % 1_000_003
    return found


def state_at(step: int) -> dict[str, np.ndarray]:
    return {"step": np.array(step), "weight": np.array(weight(step))}


class Future:
    """An answer that may come. Changes: once, from pending to what became of it.

    Fields
        seen: whether the worker has begun; "fate" where a fate answers
    """

    def __init__(self, function: Any = None, args: Sequence[Any] = ()) -> None:
        self.status, self.function, self.args, self.seen = "pending", function, args, ""
        self.value: Any = None

    def settle(self, value: Any, status: str = "finished") -> "Future":
        if self.status == "pending":
            self.status, self.value = status, value
        return self

    def done(self) -> bool:
        return self.status != "pending"

    def result(self, timeout: float | None = None) -> Any:
        if isinstance(self.value, BaseException):
            raise self.value
        return self.value

    def exception(self) -> Any:
        return self.value

    def cancel(self) -> None:
        self.settle(None, "cancelled")


class Fake:
    """A worker's part in the training. Changes: with every step."""

    def __init__(self, name: str, step: int = 0) -> None:
        self.name, self.step, self.weight, self.facts, self.seconds = name, step, weight(step), FACTS, 0.0
        self.orders: list[StepOrder] = []

    def go(self, step: int) -> list[list[np.ndarray]]:
        """Steps up to `step`, and what each gave."""
        results = []
        for i in range(self.step, step):
            results.append([np.array(self.weight)])
            self.weight = (self.weight * 31 + i) % 1_000_003
        self.step = max(step, self.step)
        return results

    def take(self, other: "Fake") -> None:
        self.step, self.weight = other.step, other.weight

    def report(self, order: StepOrder, step: int, lost: str = "", missing: int = -1) -> StepReport:
        """What an honest member says that has gone as far as `step`."""
        results = self.go(step)
        digest = b"" if lost else str((self.step, self.weight)).encode()
        state = (
            {"step": np.array(self.step), "weight": np.array(self.weight)} if order.reports_state and not lost else {}
        )
        return StepReport(self.step, results, self.seconds, lost, missing, digest, state)


class Cluster:
    """What `Crew` takes for a client, and its clock. Changes: who is there, the time, what is under way.

    Fields
        members: who is there, by name
        fates: of a member's next orders; honest ones when there is none
        told: the functions that were submitted, and to whom
        late: how many of a round that is lost have not had the last sum, and so are a step behind the others
    """

    status = "running"

    def __init__(
        self, names: str = "", step: int = 0, limits: Limits = LIMITS, shards: int = 8, trust_network: bool = True
    ) -> None:
        self.late = 0
        self.members = {name: Fake(name, step) for name in names}
        self.job = Job(b"token", None, step, None, 0, shards, limits, trust_network)
        self.client_step, self.now = step, 0.0
        self.fates: dict[str, list[Fate]] = {}
        self.told: list[tuple[str, Any]] = []
        self.waiting: list[tuple[str, Future]] = []
        self.later: list[tuple[float, Callable[[], Any]]] = []
        self.scattered: list[Future] = []
        self.prepared: dict[str, Any] = {}

    def crew(self) -> Coordinator:
        return Coordinator(self, self.job, FACTS, lambda: state_at(self.client_step))

    # -- the clock ----------------------------------------------------------------------------------------------------
    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float = TICK) -> None:
        self.now += seconds
        self.pump()

    def at(self, seconds: float, what: Callable[[], Any]) -> None:
        """Something that happens so many seconds from now."""
        self.later.append((self.now + seconds, what))

    # -- the client ---------------------------------------------------------------------------------------------------
    def run(self, function: Any, *args: Any, on_error: str) -> None:
        assert on_error == "ignore"
        self.told.append((function.__name__, *args))

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        return {"workers": dict.fromkeys(self.members)}

    def scatter(self, job: Job, **options: Any) -> Future:
        self.scattered.append(Future().settle(job))
        return self.scattered[-1]

    def submit(self, function: Any, *args: Any, workers: list[str], **options: Any) -> Future:
        assert options == {"allow_other_workers": False, "pure": False, "retries": 0}
        future = Future(function, args)
        self.told.append((function.__name__, workers[0]))
        self.waiting.append((workers[0], future))
        return future

    # -- the workers --------------------------------------------------------------------------------------------------
    def leave(self, name: str) -> None:
        """A worker dies: whatever it was to answer is lost."""
        self.members.pop(name, None)
        for worker, future in self.waiting:
            if worker == name:
                future.settle(None, "lost")

    def pump(self) -> None:
        """Let workers answer what they were told by now."""
        due = [what for when, what in self.later if when <= self.now]
        self.later = [(when, what) for when, what in self.later if when > self.now]
        for what in due:
            what()
        for name, future in sorted(self.waiting, key=lambda x: x[1].function is carry_out):
            if not future.done():
                self.answer(name, future)
        self.waiting = [x for x in self.waiting if not x[1].done()]

    def answer(self, name: str, future: Future) -> None:
        member = self.members.get(name)
        if member is None:
            future.settle(None, "lost")
        elif future.function is prepare:
            made = self.prepared.get(name)
            if isinstance(made, BaseException):
                future.settle(made, "error")
            elif made != "never":
                future.settle(WorkerReady(("host", 1), member.step, member.facts))
        elif future.function is take_state:
            arrays = future.args[1]
            member.step, member.weight = int(arrays["step"]), int(arrays["weight"])
            future.settle(member.step)
        elif not future.seen:
            self.round_of(future)

    def round_of(self, future: Future) -> None:
        """All orders of one round at once: those with a fate meet it, and decide how far the others come."""
        number = future.args[1].round
        orders = {name: x for name, x in self.waiting if x.function is carry_out and x.args[1].round == number}
        present = {name: x for name, x in orders.items() if name in self.members and not x.done()}
        by_index = {x.args[1].me: self.members[name] for name, x in present.items()}
        cut: list[tuple[int, int]] = []  # how many steps, and who is missed then
        for name, x in present.items():
            x.seen = "yes"
            order = x.args[1]
            self.members[name].orders.append(order)
            if self.fates.get(name):
                self.fates[name].pop(0)(self, self.members[name], SimpleNamespace(order=order, future=x, cut=cut))
        order = future.args[1]
        cut += [(-1, i) for i in range(len(order.doors)) if i not in [x.args[1].me for x in orders.values()]]
        steps, missing = min(cut, default=(order.last, -1))
        going = [x for x in present.values() if not x.done() and x.seen != "fate"]
        for x in going:
            if steps >= 0 and x.args[1].me in order.behind:
                by_index[x.args[1].me].take(by_index[order.source])
        for i, x in enumerate(going):
            mine = x.args[1]
            member = by_index[mine.me]
            if steps >= 0:
                assert member.step == mine.step, "a member would refuse: its state is of another step"
            end = order.last if not cut else min(order.step + max(steps, 0), order.last - 1)
            end = max(end - 1, order.step) if cut and i < self.late else end
            lost = "somebody is lost" if cut else ""
            x.settle(member.report(mine, end if steps >= 0 else member.step, lost, missing))


def dies(steps: int) -> Fate:
    """The worker is gone after so many steps of the order; -1: before it sends or takes a state."""

    def fate(cluster: Cluster, member: Fake, at: Any) -> None:
        at.cut.append((steps, at.order.me))
        at.future.seen = "fate"
        cluster.leave(member.name)

    return fate


def vanishes() -> Fate:
    """It makes all steps with the others, and is gone before the client has its report."""

    def fate(cluster: Cluster, member: Fake, at: Any) -> None:
        at.future.seen = "fate"
        cluster.leave(member.name)

    return fate


def hangs(steps: int, seconds: float) -> Fate:
    """It stops after so many steps; the others miss it, and it answers when they have gone on without it."""

    def fate(cluster: Cluster, member: Fake, at: Any) -> None:
        at.cut.append((steps, at.order.me))
        at.future.seen = "fate"
        cluster.at(seconds, lambda: at.future.settle(member.report(at.order, member.step, "somebody is lost")))

    return fate


def fails(error: BaseException) -> Fate:
    """What it does raises."""

    def fate(cluster: Cluster, member: Fake, at: Any) -> None:
        at.cut.append((0, at.order.me))
        at.future.settle(error, "error")

    return fate


def use(monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> Coordinator:
    """A crew whose time is the cluster's."""
    monkeypatch.setattr(crew_module, "time", cluster)
    monkeypatch.setattr(crew_module, "wait_for_any", lambda futures: cluster.sleep())
    return cluster.crew()
