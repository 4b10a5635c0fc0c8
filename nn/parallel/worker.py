"""Member: a worker's part in a training. It holds Functions and the whole state, and runs many steps at a time.

Neither client nor scheduler is in a step: members exchange sums by connections of their own. Whatever goes wrong in a
round ends it for all; a step is then made as a whole or not at all, since the state changes in one call.
"""

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import numpy as np
from distributed import Worker, WorkerPlugin, get_worker

from cgraph import MemberError, Runner
from cgraph.dist.mesh import Mesh, raw
from cgraph.dist.sockets import Door, LostError, Secrets
from cgraph.dist.sums import peers_of, sum_over_members
from cgraph.dist.tree import add_neighbours
from cgraph.storage.cell import assign_all
from nn.loader import Loader
from nn.parallel.messages import Job, StepOrder, StepReport, WorkerReady, facts
from nn.parallel.sharded_step import KEY, key_of

NAME = "cgraph-data-parallel"


class TrainingWorker(WorkerPlugin):
    """A worker's part. Changes: with every step.

    Fields
        token: of the job; one job at a time has the workers of a cluster
    """

    name = NAME

    def __init__(self, token: bytes) -> None:
        self.token = token

    def setup(self, worker: Worker) -> None:
        self.worker, self.lock = worker, threading.Lock()
        self.door: Door | None = None
        self.mesh: Mesh | None = None
        self.gone = False

    def teardown(self, worker: Worker) -> None:
        """The job is over, or the worker is: whoever waits here stops waiting."""
        self.gone = True
        if self.door is not None:
            self.door.close()
        if self.mesh is not None:
            self.mesh.give_up()

    @contextmanager
    def turn(self, seconds: float) -> Iterator[None]:
        """One task at a time; one that the client does not wait for any more may still be at a step."""
        if not self.lock.acquire(timeout=seconds):
            raise MemberError(f"{self.worker.address} has been at a step for {seconds:g} s")
        try:
            yield
        finally:
            self.lock.release()

    # -- what it holds ------------------------------------------------------------------------------------------------
    def begin(self, job: Job) -> WorkerReady:
        """Make or load what steps need."""
        if self.door is None:
            self.job, self.shards = job, job.shards
            self.gradient, self.update = job.source.pair(self.worker.state.nthreads)
            self.loader = job.data if isinstance(job.data, Loader) else job.data()
            self.state = self.update.state
            self.set_step(job.step)
            self.draws = self.gradient.inputs[-1].name == KEY
            self.door = Door(urlsplit(self.worker.address).hostname or "", secrets(self.worker, job.token), job.limits)
        return WorkerReady(self.door.address, self.step, facts(self.update))

    @property
    def step(self) -> int:
        """Of the state: a part of it, and so never ahead or behind."""
        return int(self.state["step"].cell.array)  # type: ignore[arg-type]

    def set_step(self, step: int) -> None:
        self.state["step"].assign(np.int64(step))  # type: ignore[attr-defined]

    def set_state(self, arrays: dict[str, np.ndarray]) -> None:
        """Take the whole state of another member, or none of it."""
        assign_all({x: arrays[name] for name, x in self.state.items()})

    # -- rounds -------------------------------------------------------------------------------------------------------
    def carry_out(self, order: StepOrder) -> StepReport:
        """Go as far as the order says, or until somebody is lost."""
        results: list[list[np.ndarray]] = []
        self.busy, lost, missing = 0.0, "", -1
        try:
            mesh = self.meshed(order)
            self.send_state(mesh, order)
            if self.step != order.step:
                raise MemberError(f"{self.worker.address} is at step {self.step}, and was to be at {order.step}")
            while self.step < order.last:
                results.append(self.one(mesh, order))
        except LostError as error:
            self.drop_mesh()
            lost, missing = str(error), -1 if error.member is None else error.member
        except BaseException:
            self.drop_mesh()
            raise
        seconds = self.busy / max(len(results) * order.deal[order.me], 1)
        arrays = (
            {name: np.array(x.cell.array) for name, x in self.state.items()} if order.reports_state and not lost else {}
        )
        same = b"" if lost else digest(self.update)
        return StepReport(self.step, results, seconds, lost, missing, same, arrays)

    def one(self, mesh: Mesh, order: StepOrder) -> list[np.ndarray]:
        """One step: gradients of own shards, the sum of all, the update."""
        first, began = sum(order.deal[: order.me]), time.perf_counter()
        mine = range(first, first + order.deal[order.me])
        parts = add_neighbours(((i, 1), self.gradient(*self.arrays(i))) for i in mine)
        self.busy += time.perf_counter() - began
        return self.update(sum_over_members(mesh, self.step, order.deal, parts))

    def arrays(self, shard: int) -> list[np.ndarray]:
        """What the gradient of a shard is computed of."""
        arrays = list(self.loader.shard_at(self.step, shard, self.shards))
        return [*arrays, key_of(self.job.seed, self.step, shard)] if self.draws else arrays

    def meshed(self, order: StepOrder) -> Mesh:
        """The connections of this round: those of the last order, if it is the same round."""
        if self.mesh is None or self.mesh.round != order.round:
            self.drop_mesh()
            assert self.door is not None
            self.door.forget(order.round)
            peers = {*peers_of(order.me, order.deal)}
            if order.me == order.source:
                peers |= {*order.behind}
            elif order.me in order.behind:
                peers.add(order.source)
            self.mesh = Mesh(self.door, order.round, order.me, order.doors, peers, self.job.limits)
        if self.gone:
            self.drop_mesh()
            raise LostError("the training is over")
        return self.mesh

    def drop_mesh(self) -> None:
        if self.mesh is not None:
            self.mesh.close()
        self.mesh = None

    def send_state(self, mesh: Mesh, order: StepOrder) -> None:
        """Those who are behind take the state of one who is not."""
        if order.me == order.source and order.behind:
            arrays = [np.ascontiguousarray(x.cell.array) for x in self.state.values()]
            mesh.exchange(order.step, [(i, tag, x) for i in order.behind for tag, x in enumerate(arrays)], [])
        elif order.me in order.behind:
            came = {name: np.empty(x.spec.shape, x.spec.dtype) for name, x in self.state.items()}
            mesh.exchange(order.step, [], [(order.source, tag, x) for tag, x in enumerate(came.values())])
            self.set_state(came)


def digest(update: Runner) -> bytes:
    """Of the whole state."""
    hasher = hashlib.sha256()
    for x in update.state.values():
        hasher.update(raw(np.ascontiguousarray(x.cell.array)))
    return hasher.digest()


def secrets(worker: Worker, token: bytes) -> Secrets:
    """The job's token, and TLS where the cluster has it."""
    if not worker.address.startswith("tls://"):
        return Secrets(token)
    ends = worker.security.get_listen_args("worker"), worker.security.get_connection_args("worker")
    return Secrets(token, *(end["ssl_context"] for end in ends))


# -- tasks ------------------------------------------------------------------------------------------------------------
def worker_of(token: bytes) -> TrainingWorker:
    """This worker's. MemberError when it belongs to another job."""
    plugin = get_worker().plugins.get(NAME)
    if not isinstance(plugin, TrainingWorker) or plugin.token != token:
        raise MemberError("the cluster is given to another training, or this one is over")
    return plugin


def prepare(job: Job) -> WorkerReady:
    member = worker_of(job.token)
    with member.turn(job.limits.step):
        return member.begin(job)


def take_state(token: bytes, arrays: dict[str, np.ndarray]) -> int:
    member = worker_of(token)
    with member.turn(member.job.limits.step):
        member.set_state(arrays)
        return member.step


def carry_out(token: bytes, order: StepOrder) -> StepReport:
    member = worker_of(token)
    with member.turn(member.job.limits.step):
        return member.carry_out(order)
