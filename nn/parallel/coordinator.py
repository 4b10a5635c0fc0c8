"""Coordinator: the client's side of a training. It tracks the workers, sends them orders and handles lost workers.

The client takes no part in a step. It sends orders of some seconds to all workers, collects their reports, and stores
the state after each order, so training continues even when all workers are lost at once. dask lists the workers and
delivers orders. A worker that others miss, or that does not report, is excluded until it answers.
"""

import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from distributed import Client, Future, wait
from distributed.client import FutureCancelledError, FuturesCancelledError

from cgraph import CgraphError, MemberError
from cgraph.dist.sockets import is_private
from cgraph.dist.tree import deal_shards
from cgraph.terminal import visible
from nn.parallel.messages import Job, StepOrder, StepReport, WorkerReady
from nn.parallel.unreachable import UnreachablePairs
from nn.parallel.worker import carry_out, end_job, prepare, take_state

POLL = 0.2  # seconds between checks of the list of workers
VAIN = 10  # maximum number of successive rounds without a step
RAISED = (  # errors of our own code or the user's, which end the training
    CgraphError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, AssertionError, ImportError,
)  # fmt: skip
State = dict[str, np.ndarray]


class Coordinator:
    """The workers of a training. Changes: when workers join or leave, and with every order.

    Fields
        client: client of the cluster, whose workers all take part, at most one for each shard
        job: the job that workers receive
        facts: facts that workers must have in common with the client
        state_source: returns the client's state at the step where `steps` begins
        ready: workers that can take part
        preparing: workers that load or compile the job
        silent: workers that have not reported on an order
        unfit: workers that cannot take part, with the reason
        unreachable: pairs of workers that reach the client but not one another
        seconds: time per shard of each worker
        round: number of the current round
        pace: seconds per step
        last: workers and deal of the last successful order
    """

    def __init__(self, client: Client, job: Job, facts: tuple[str, str], state_source: Callable[[], State]) -> None:
        self.client, self.job, self.facts, self.state_source, self.limits = client, job, facts, state_source, job.limits
        self.ready: dict[str, WorkerReady] = {}
        self.preparing: dict[str, Future] = {}
        self.silent: dict[str, Future] = {}
        self.unfit: dict[str, str] = {}
        self.unreachable = UnreachablePairs(self.limits.silence + self.limits.answer)
        self.seconds: dict[str, float] = {}
        self.round, self.pace = 0, 0.0
        self.last: tuple[tuple[str, ...], tuple[int, ...]] = ((), ())
        self.sent: Future | None = None

    def close(self) -> None:
        """End the job on all workers. A worker that does not answer is not waited for."""
        work = partial(self.client.run, end_job, self.job.token, on_error="ignore")
        thread = threading.Thread(target=run_quietly, args=(work,), daemon=True)
        thread.start()
        thread.join(2 * self.limits.answer)

    # -- workers ------------------------------------------------------------------------------------------------------
    def present(self) -> set[str]:
        """Return the addresses of the cluster's workers. MemberError when dask has given up the scheduler."""
        if self.client.status == "closed":
            raise MemberError(
                "the client has lost its scheduler. Start the script again when the scheduler can be reached; it "
                "continues from its checkpoint."
            )
        return set(self.client.scheduler_info(n_workers=-1)["workers"])

    def submit(self, worker: str, function: Callable, *args: Any) -> Future:
        """Submit a task to one worker."""
        options = {"workers": [worker], "allow_other_workers": False, "pure": False, "retries": 0}
        return self.client.submit(function, *args, **options)

    def refresh(self) -> None:
        """Update the lists of workers that joined, left, became ready or answered again."""
        present = self.present()
        for workers in (self.ready, self.preparing, self.silent, self.unfit, self.seconds):
            for worker in [x for x in workers if x not in present]:
                del workers[worker]  # type: ignore[attr-defined]
        for worker in sorted(present - {*self.ready, *self.preparing, *self.silent, *self.unfit}):
            self.invite(worker)
        for worker, future in list(self.preparing.items()):
            if future.done():
                del self.preparing[worker]
                self.admit(worker, future)
        for worker, future in list(self.silent.items()):
            if future.done():  # it reports its own step
                del self.silent[worker]

    def invite(self, worker: str) -> None:
        """Let a worker prepare for the job, unless others on the network read its connections."""
        if not (self.job.trust_network or is_private(worker)):
            self.refuse(
                worker,
                "others on the network can read its connections. Start the cluster with TLS, or pass "
                "trust_network=True",
            )
            return
        with suppress(OSError, FutureCancelledError):  # the scheduler is not reached now: `refresh` tries again
            self.preparing[worker] = self.submit(worker, prepare, self.job_future())

    def job_future(self) -> Future:
        """Return the job as a Future, which workers fetch from one another; sent again when all copies are lost."""
        if self.sent is None or self.sent.status not in ("finished", "pending"):
            self.sent = self.client.scatter(self.job, hash=False, timeout=self.limits.gather)
        return self.sent

    def admit(self, worker: str, future: Future) -> None:
        """Record that a worker is ready, or why it cannot take part."""
        if future.status == "finished":
            reply = future.result()
            if reply.facts == self.facts:
                self.ready[worker] = reply
                return
            own, other = (" for ".join(facts) for facts in (self.facts, reply.facts))
            self.refuse(worker, f"it has cgraph {other}; the client has {own}")
        elif future.status == "error" and isinstance(error := future.exception(), RAISED):
            self.refuse(worker, f"{type(error).__name__}: {error}")
        # otherwise the worker or the job was lost: `refresh` tries again if it is present

    def refuse(self, worker: str, reason: str) -> None:
        """Leave a worker out, with a warning."""
        self.unfit[worker] = reason
        warnings.warn(visible(f"worker {worker} takes no part: {reason}"), stacklevel=2)

    def participants(self) -> list[str]:
        """Return the workers that take part now. MemberError when none is ready in time."""
        end = time.monotonic() + self.limits.gather
        self.refresh()
        while not self.ready or (self.round == 0 and self.preparing):
            if time.monotonic() > end:
                if self.ready:
                    break
                raise MemberError(
                    f"no worker has been ready to train for {self.limits.gather:g} s{self.reasons()}. Start workers, "
                    "or raise limits=."
                )
            if self.unfit and not self.ready and not self.preparing and not self.silent:
                raise MemberError(f"no worker can train{self.reasons()}")
            time.sleep(POLL / 4)
            self.refresh()
        return self.unreachable.without(sorted(self.ready), time.monotonic())[: self.job.shards]

    def reasons(self) -> str:
        """Return why workers cannot take part, as text."""
        return "".join(f"; {worker}: {why}" for worker, why in self.unfit.items())

    # -- steps --------------------------------------------------------------------------------------------------------
    def steps(self, first: int, most: int, rate: State | None = None) -> tuple[list[list[np.ndarray]], State]:
        """Run at least one step and at most `most`.

        Parameters
            rate: the part of the state that the client has changed since the last steps; None for nothing
        Returns
            outputs of each step, and the state after them
        Raises
            MemberError: no worker is present, no step succeeds, or workers do not have the same state
            errors of a step
        """
        last = first + (min(most, max(1, int(self.limits.round / self.pace))) if self.pace else 1)
        results: list[list[np.ndarray]] = []
        failures, why = 0, ""
        while failures < VAIN:
            workers = self.participants()
            if not self.workers_at(workers, first + len(results)):
                results = []  # no worker has their state any more
                if not self.send_state(workers[0]):
                    failures, why = failures + 1, f"{workers[0]} does not accept the state"
                    continue
            reports = self.run_order(workers, first + len(results), last, rate)
            furthest = max(reports, key=lambda x: x.step, default=None)
            if furthest is None:
                failures, why = failures + 1, "no worker has reported"
                continue
            if all(not x.lost for x in reports) and len(reports) == len(workers):
                self.check_same(reports)
                return results + furthest.results, reports[0].state
            failures, why = (0, "") if furthest.results else (failures + 1, next(x.lost for x in reports if x.lost))
            results += furthest.results
        raise MemberError(
            f"{VAIN} rounds without a step, the last one because {why}. Check the network between workers."
        )

    def workers_at(self, workers: Sequence[str], step: int) -> list[str]:
        """Return the workers whose state is at a step."""
        return [x for x in workers if self.ready[x].step == step]

    def send_state(self, worker: str) -> bool:
        """Send the client's state to a worker, which passes it on to the others. Return False when it fails."""
        future = self.submit(worker, take_state, self.job.token, self.state_source())
        self.collect({worker: future})
        if future.status != "finished":
            self.ready.pop(worker, None)
            return False
        ready = self.ready[worker]
        self.ready[worker] = WorkerReady(ready.door, future.result(), ready.facts)
        return True

    def run_order(self, members: list[str], step: int, last: int, rate: State | None = None) -> list[StepReport]:
        """Let workers run from `step` to `last`; return the reports of those that answer."""
        behind = [i for i, x in enumerate(members) if self.ready[x].step != step]
        source = next(i for i in range(len(members)) if i not in behind)
        deal = tuple(deal_shards(self.job.shards, [self.seconds.get(x, 0.0) for x in members]))
        if behind or (tuple(members), deal) != self.last:
            self.round += 1
        doors = [self.ready[x].door for x in members]
        futures = {}
        for i, worker in enumerate(members):
            order = StepOrder(self.round, i, doors, deal, step, last, source, behind, i == 0, rate)
            futures[worker] = self.submit(worker, carry_out, self.job.token, order)
        began = time.monotonic()
        reports = self.collect(futures)
        whole = len(reports) == len(members) and not any(x.lost for x in reports.values())
        self.last = (tuple(members), deal) if whole else ((), ())
        if whole:
            self.unreachable.forget(members)
        else:
            self.unreachable.record(members, reports, time.monotonic())
        self.record(reports, time.monotonic() - began if whole else 0.0, last - step)
        return [reports[x] for x in members if x in reports]

    def record(self, reports: dict[str, StepReport], seconds: float, steps: int) -> None:
        """Record the steps and times of workers."""
        for worker, report in reports.items():
            ready = self.ready[worker]
            self.ready[worker] = WorkerReady(ready.door, report.step, ready.facts)
            self.seconds[worker] = report.seconds or self.seconds.get(worker, 0.0)
        if seconds and steps:
            self.pace = seconds / steps

    def collect(self, futures: dict[str, Future]) -> dict[str, Any]:
        """Return the answers of workers: of all, or of those that are neither lost nor missed by others.

        Raises what a step raises. A worker that does not answer is not ready any more.
        """
        workers, pending, answers = list(futures), dict(futures), {}
        end = time.monotonic() + self.limits.step + self.limits.round
        grace = self.limits.silence + self.limits.answer + 2 * self.pace
        missing: set[str] = set()
        while pending.keys() - missing and time.monotonic() < end:
            wait_for_any(list(pending.values()))
            for worker in [x for x in pending if pending[x].done()]:
                answers[worker] = report = answer(pending.pop(worker))
                if report is None or (isinstance(report, StepReport) and report.lost):
                    end = min(end, time.monotonic() + grace)
                if isinstance(report, StepReport) and report.missing >= 0:
                    missing.add(workers[report.missing])
            if pending:
                for worker in pending.keys() - self.present():
                    pending.pop(worker).cancel()
        self.silent |= pending
        for worker in futures:
            if answers.get(worker) is None:
                self.ready.pop(worker, None)
        return {worker: x for worker, x in answers.items() if x is not None}

    def check_same(self, reports: list[StepReport]) -> None:
        """Raise MemberError when the states of workers differ."""
        digests = {x.digest for x in reports}
        if len(digests) > 1:
            raise MemberError(
                f"{len(digests)} states among {len(reports)} members after step {reports[0].step}. Pass an engine= "
                "whose code runs on all workers."
            )


def run_quietly(work: Callable[[], Any]) -> None:
    """Call something that may fail when the cluster is gone."""
    with suppress(Exception):
        work()


def wait_for_any(futures: list[Future]) -> None:
    """Wait until one future is done, at most POLL seconds."""
    try:
        wait(futures, timeout=POLL, return_when="FIRST_COMPLETED")
    except (OSError, RuntimeError, FuturesCancelledError):  # timeouts, and futures of a connection that was lost
        time.sleep(POLL / 4)


def answer(future: Future) -> Any:
    """Return the result of a task; None when its worker is lost. Raises errors of our own code or the user's."""
    if future.status == "finished":
        try:
            return future.result(timeout=10)
        except (OSError, FutureCancelledError):  # its worker, or the connection to the scheduler, is lost
            return None
    if future.status == "error" and isinstance(error := future.exception(), RAISED):
        raise error
    return None
