"""Crew: the client's side of a training. Who is there, who takes part in a round, and what to do when somebody is gone.

The client is not in a step. It gives orders of some seconds to all members, gathers their reports, and holds the state
after each order, so that a training goes on even when all members are gone at once. dask says who is there and carries
orders; whom the other members miss, or who does not report, is left out until it answers.
"""

import threading
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from distributed import Client, Future, wait

from cgraph import CgraphError, MemberError
from cgraph.dist.tree import deal_shards
from cgraph.terminal import visible
from nn.parallel.messages import Job, StepOrder, StepReport, WorkerReady
from nn.parallel.worker import NAME, TrainingWorker, carry_out, prepare, take_state

POLL = 0.2  # seconds between looks at who is there
VAIN = 10  # rounds without a step, one after the other, until there is no more hope
OURS = (CgraphError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, AssertionError, ImportError)
State = dict[str, np.ndarray]


class Coordinator:
    """The workers that train. Changes: with who comes and goes, and with every order.

    Fields
        client: of the cluster, whose workers all take part, up to one for each shard
        job: what members are told
        facts: which members must share with the client
        state_source: gives the state that the client holds, at the step that `steps` begins with
        ready: workers that can take part
        coming: workers that make ready
        silent: workers that do not report on an order
        unfit: why a worker cannot take part
    """

    def __init__(self, client: Client, job: Job, facts: tuple[str, str], state_source: Callable[[], State]) -> None:
        self.client, self.job, self.facts, self.state_source, self.limits = client, job, facts, state_source, job.limits
        self.ready: dict[str, WorkerReady] = {}
        self.coming: dict[str, Future] = {}
        self.silent: dict[str, Future] = {}
        self.unfit: dict[str, str] = {}
        self.seconds: dict[str, float] = {}
        self.round, self.pace = 0, 0.0
        self.last: tuple[tuple[str, ...], tuple[int, ...]] = ((), ())
        self.bounded(lambda: client.register_plugin(TrainingWorker(job.token), name=NAME))
        self.sent: Future | None = None

    def close(self) -> None:
        """Members stop, and their workers are free."""
        self.bounded(lambda: self.client.unregister_worker_plugin(NAME), seconds=2 * self.limits.answer, quiet=True)

    def bounded(self, work: Callable[[], Any], seconds: float | None = None, quiet: bool = False) -> None:
        """Ask something of all workers, of which one that has stopped would never answer."""
        seconds = self.limits.gather if seconds is None else seconds
        errors: list[BaseException] = []

        def run() -> None:
            try:
                work()
            except Exception as error:  # told below, in the thread that waits
                errors.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(seconds)
        if quiet:
            return
        if thread.is_alive():
            raise MemberError(f"the cluster has not answered for {seconds:g} s")
        if errors:
            raise MemberError(f"the cluster does not take part: {errors[0]}") from errors[0]

    # -- who is there -------------------------------------------------------------------------------------------------
    def there(self) -> set[str]:
        return set(self.client.scheduler_info(n_workers=-1)["workers"])

    def on(self, worker: str, function: Callable, *args: Any) -> Future:
        options = {"workers": [worker], "allow_other_workers": False, "pure": False, "retries": 0}
        return self.client.submit(function, *args, **options)

    def look(self) -> None:
        """Take note of who has come, gone, made ready or answered again."""
        there = self.there()
        for workers in (self.ready, self.coming, self.silent, self.unfit, self.seconds):
            for worker in [x for x in workers if x not in there]:
                del workers[worker]  # type: ignore[attr-defined]
        for worker in sorted(there - {*self.ready, *self.coming, *self.silent, *self.unfit}):
            self.coming[worker] = self.on(worker, prepare, self.told())
        for worker, future in list(self.coming.items()):
            if future.done():
                del self.coming[worker]
                self.meet(worker, future)
        for worker, future in list(self.silent.items()):
            if future.done():  # where it is now, it says itself
                del self.silent[worker]

    def told(self) -> Future:
        """The job, where members fetch it from one another; sent again when all who had it are gone."""
        if self.sent is None or self.sent.status not in ("finished", "pending"):
            self.sent = self.client.scatter(self.job, hash=False, timeout=self.limits.gather)
        return self.sent

    def meet(self, worker: str, future: Future) -> None:
        """Somebody has made ready, or cannot."""
        if future.status == "finished":
            reply = future.result()
            if reply.facts == self.facts:
                self.ready[worker] = reply
                return
            self.unfit[worker] = f"it has cgraph {' for '.join(reply.facts)}; the client has {' for '.join(self.facts)}"
        elif future.status == "error" and isinstance(error := future.exception(), OURS):
            self.unfit[worker] = f"{type(error).__name__}: {error}"
        else:  # it is gone, or what it was told is: it is asked again if it is there
            return
        warnings.warn(visible(f"worker {worker} takes no part: {self.unfit[worker]}"), stacklevel=2)

    def gathered(self) -> list[str]:
        """Those who take part now. MemberError when nobody is ready in time."""
        end = time.monotonic() + self.limits.gather
        self.look()
        while not self.ready or (self.round == 0 and self.coming):
            if time.monotonic() > end:
                if self.ready:
                    break
                raise MemberError(f"no worker has been ready to train for {self.limits.gather:g} s{self.reasons()}")
            if self.unfit and not self.ready and not self.coming and not self.silent:
                raise MemberError(f"no worker can train{self.reasons()}")
            time.sleep(POLL / 4)
            self.look()
        return sorted(self.ready)[: self.job.shards]

    def reasons(self) -> str:
        return "".join(f"; {worker}: {why}" for worker, why in self.unfit.items())

    # -- steps --------------------------------------------------------------------------------------------------------
    def steps(self, first: int, most: int) -> tuple[list[list[np.ndarray]], State]:
        """Make at least one step, and not more than `most`.

        Returns
            what each step gave, and the state behind them
        Raises
            MemberError: nobody is there, nothing moves any more, or members do not have the same state
            whatever a step raises
        """
        last = first + (min(most, max(1, int(self.limits.round / self.pace))) if self.pace else 1)
        results: list[list[np.ndarray]] = []
        in_vain, why = 0, ""
        while in_vain < VAIN:
            members = self.gathered()
            if not self.with_state(members, first + len(results)):
                results = []  # nobody is left who has made them
                if not self.give_state(members[0]):
                    in_vain, why = in_vain + 1, f"{members[0]} does not take the state"
                    continue
            reports = self.ordered(members, first + len(results), last)
            furthest = max(reports, key=lambda x: x.step, default=None)
            if furthest is None:
                in_vain, why = in_vain + 1, "no member has reported"
                continue
            if all(not x.lost for x in reports) and len(reports) == len(members):
                self.check_same(reports)
                return results + furthest.results, reports[0].state
            in_vain, why = (0, "") if furthest.results else (in_vain + 1, next(x.lost for x in reports if x.lost))
            results += furthest.results
        raise MemberError(f"{VAIN} rounds without a step, the last one because {why}")

    def with_state(self, members: Sequence[str], step: int) -> list[str]:
        return [x for x in members if self.ready[x].step == step]

    def give_state(self, worker: str) -> bool:
        """Send the client's state to a member, and so to all."""
        future = self.on(worker, take_state, self.job.token, self.state_source())
        self.wait({worker: future})
        if future.status != "finished":
            self.ready.pop(worker, None)
            return False
        ready = self.ready[worker]
        self.ready[worker] = WorkerReady(ready.door, future.result(), ready.facts)
        return True

    def ordered(self, members: list[str], step: int, last: int) -> list[StepReport]:
        """Let members go on to a step; what those report who do."""
        behind = [i for i, x in enumerate(members) if self.ready[x].step != step]
        source = next(i for i in range(len(members)) if i not in behind)
        deal = tuple(deal_shards(self.job.shards, [self.seconds.get(x, 0.0) for x in members]))
        if behind or (tuple(members), deal) != self.last:
            self.round += 1
        doors = [self.ready[x].door for x in members]
        futures = {}
        for i, worker in enumerate(members):
            order = StepOrder(self.round, i, doors, deal, step, last, source, behind, reports_state=i == 0)
            futures[worker] = self.on(worker, carry_out, self.job.token, order)
        began = time.monotonic()
        reports = self.wait(futures)
        whole = len(reports) == len(members) and not any(x.lost for x in reports.values())
        self.last = (tuple(members), deal) if whole else ((), ())
        self.note(reports, time.monotonic() - began if whole else 0.0, last - step)
        return [reports[x] for x in members if x in reports]

    def note(self, reports: dict[str, StepReport], seconds: float, steps: int) -> None:
        """Where members are, and how long things took them."""
        for worker, report in reports.items():
            ready = self.ready[worker]
            self.ready[worker] = WorkerReady(ready.door, report.step, ready.facts)
            self.seconds[worker] = report.seconds or self.seconds.get(worker, 0.0)
        if seconds and steps:
            self.pace = seconds / steps

    def wait(self, futures: dict[str, Future]) -> dict[str, Any]:
        """What workers answer, until all have, or those who have not are gone, or missed by the others.

        Whatever a step raises is raised; who does not answer is ready no more.
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
                for worker in pending.keys() - self.there():
                    pending.pop(worker).cancel()
        self.silent |= pending
        for worker in futures:
            if answers.get(worker) is None:
                self.ready.pop(worker, None)
        return {worker: x for worker, x in answers.items() if x is not None}

    def check_same(self, reports: list[StepReport]) -> None:
        """MemberError when members differ."""
        digests = {x.digest for x in reports}
        if len(digests) > 1:
            raise MemberError(f"{len(digests)} states among {len(reports)} members after step {reports[0].step}")


def wait_for_any(futures: list[Future]) -> None:
    """Until one is done, but not for long."""
    try:
        wait(futures, timeout=POLL, return_when="FIRST_COMPLETED")
    except Exception as error:  # dask raises what its loop raises: a timeout, or a future that was cancelled
        if not isinstance(error, TimeoutError | OSError | RuntimeError):
            raise


def answer(future: Future) -> Any:
    """What a task gave; None where its worker is gone. Raises what our own code or the user's raised."""
    if future.status == "finished":
        try:
            return future.result(timeout=10)
        except (TimeoutError, OSError):  # its worker is gone with it
            return None
    if future.status == "error" and isinstance(error := future.exception(), OURS):
        raise error
    return None
