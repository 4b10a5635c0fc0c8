"""TrainingWorker: a worker's part in a training. It stores the Functions and the whole state, and runs many steps.

Neither client nor scheduler takes part in a step: workers exchange sums over connections of their own. Any failure in a
round ends it for all workers. The state changes in one call, so a step happens completely or not at all.
"""

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from distributed import Worker, WorkerPlugin, get_worker
from distributed.utils import sync

from cgraph import MemberError, Runner
from cgraph.dist.mesh import Mesh, raw
from cgraph.dist.sockets import Door, LostError, Secrets, door_host
from cgraph.dist.sums import peers_of, sum_over_members
from cgraph.dist.tree import Part, add_neighbours
from cgraph.storage.cell import assign_all
from nn.loader import Loader
from nn.parallel.messages import Job, StepOrder, StepReport, WorkerReady, facts
from nn.parallel.running_shard import RunningShard
from nn.parallel.sharded_step import KEY, key_of

NAME = "cgraph-data-parallel"


class TrainingWorker(WorkerPlugin):
    """A worker's part in a training. Changes: with every step.

    Fields
        token: token of the job; a worker runs one job at a time
        former: tokens of jobs that lost this worker to a later one
    """

    name = NAME

    def __init__(self, token: bytes, former: frozenset[bytes] = frozenset()) -> None:
        self.token, self.former = token, former

    def setup(self, worker: Worker) -> None:
        self.worker, self.lock = worker, threading.Lock()
        self.door: Door | None = None
        self.mesh: Mesh | None = None
        self.closed = False

    def teardown(self, worker: Worker) -> None:
        """End the job or the worker: everything that waits here stops waiting."""
        self.closed = True
        if self.door is not None:
            self.door.close()
        if self.mesh is not None:
            self.mesh.give_up()

    @contextmanager
    def exclusive(self, seconds: float) -> Iterator[None]:
        """Run one task at a time: a task that the client has given up may still run a step."""
        if not self.lock.acquire(timeout=seconds):
            raise MemberError(
                f"{self.worker.address} has been at a step for {seconds:g} s. Raise limits=, or use a faster worker."
            )
        try:
            yield
        finally:
            self.lock.release()

    # -- state --------------------------------------------------------------------------------------------------------
    def begin(self, job: Job) -> WorkerReady:
        """Load or compile the Functions, and open the door to other workers."""
        if self.door is None:
            self.job, self.shards = job, job.shards
            self.gradient, self.update = job.source.pair(self.worker.state.nthreads)
            self.loader = job.data if isinstance(job.data, Loader) else job.data()
            self.state = self.update.state
            self.set_step(job.step)
            self.draws = self.gradient.inputs[-1].name == KEY
            self.door = Door(door_host(self.worker.address), secrets(self.worker, job.token), job.limits)
        return WorkerReady(self.door.address, self.step, facts(self.update))

    @property
    def step(self) -> int:
        """Step of the state to which it belongs."""
        return int(self.state["step"].cell.array)  # type: ignore[arg-type]

    def set_step(self, step: int) -> None:
        """Set the step of the state."""
        self.state["step"].assign(np.int64(step))  # type: ignore[attr-defined]

    def set_state(self, arrays: dict[str, np.ndarray]) -> None:
        """Take the whole state of another worker, or none of it."""
        assign_all({x: arrays[name] for name, x in self.state.items()})

    # -- rounds -------------------------------------------------------------------------------------------------------
    def carry_out(self, order: StepOrder) -> StepReport:
        """Run the steps of an order, until a worker is lost."""
        results: list[list[np.ndarray]] = []
        self.busy, lost, missing = 0.0, "", -1
        try:
            mesh = self.connect(order)
            self.send_state(mesh, order)
            if self.step != order.step:
                raise MemberError(
                    f"{self.worker.address} is at step {self.step} instead of {order.step}. Restart the training from "
                    "its checkpoint."
                )
            assign_all({self.state[name]: value for name, value in (order.rate or {}).items()})
            while self.step < order.last:
                results.append(self.run_step(mesh, order))
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

    def run_step(self, mesh: Mesh, order: StepOrder) -> list[np.ndarray]:
        """Run one step: gradients of the own shards, the sums over all shards, the update.

        The last shard's pieces are summed while later ones are computed.
        """
        first, began = sum(order.deal[: order.me]), time.perf_counter()
        *others, last = range(first, first + order.deal[order.me])
        sums: list[list[tuple[Part, np.ndarray]]] = [[] for _ in self.gradient.outputs]
        for i in others:
            sums = [add_neighbours([*parts, ((i, 1), x)]) for parts, x in zip(sums, self.gradient(*self.arrays(i)))]
        arrays = self.arrays(last)
        self.busy += time.perf_counter() - began
        totals = []
        with RunningShard(self.gradient, arrays, in_thread=len(order.deal) > 1) as pieces:
            for parts, x in zip(sums, pieces):
                parts = add_neighbours([*parts, ((last, 1), x)])
                totals.append(sum_over_members(mesh, self.step, order.deal, parts))
        self.busy += pieces.seconds
        return self.update(*totals)

    def arrays(self, shard: int) -> list[np.ndarray]:
        """Return the inputs of the gradient of a shard."""
        arrays = list(self.loader.shard_at(self.step, shard, self.shards))
        return [*arrays, key_of(self.job.seed, self.step, shard)] if self.draws else arrays

    def connect(self, order: StepOrder) -> Mesh:
        """Return the connections of this round: those of the last order, if it is the same round."""
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
        if self.closed:
            self.drop_mesh()
            raise LostError("the training is over")
        return self.mesh

    def drop_mesh(self) -> None:
        """Close all connections."""
        if self.mesh is not None:
            self.mesh.close()
        self.mesh = None

    def send_state(self, mesh: Mesh, order: StepOrder) -> None:
        """Send the state from `order.source` to the workers in `order.behind`."""
        if order.me == order.source and order.behind:
            arrays = [np.ascontiguousarray(x.cell.array) for x in self.state.values()]
            mesh.exchange(order.step, [(i, tag, x) for i in order.behind for tag, x in enumerate(arrays)], [])
        elif order.me in order.behind:
            received = {name: np.empty(x.spec.shape, x.spec.dtype) for name, x in self.state.items()}
            mesh.exchange(order.step, [], [(order.source, tag, x) for tag, x in enumerate(received.values())])
            self.set_state(received)


def digest(update: Runner) -> bytes:
    """Return a hash of the whole state."""
    hasher = hashlib.sha256()
    for x in update.state.values():
        hasher.update(raw(np.ascontiguousarray(x.cell.array)))
    return hasher.digest()


def secrets(worker: Worker, token: bytes) -> Secrets:
    """Return the job's token, with TLS contexts if the cluster uses TLS."""
    if not worker.address.startswith("tls://"):
        return Secrets(token)
    ends = worker.security.get_listen_args("worker"), worker.security.get_connection_args("worker")
    return Secrets(token, *(end["ssl_context"] for end in ends))


# -- tasks ------------------------------------------------------------------------------------------------------------
OTHER_JOB = "the cluster runs another training, or this one is over. Start one training at a time on a cluster."


def worker_of(token: bytes) -> TrainingWorker:
    """Return the TrainingWorker of this process. MemberError when it belongs to another job."""
    plugin = get_worker().plugins.get(NAME)
    if not isinstance(plugin, TrainingWorker) or plugin.token != token:
        raise MemberError(OTHER_JOB)
    return plugin


def prepare(job: Job) -> WorkerReady:
    """Task: prepare this worker for a job, which takes it from an earlier one."""
    worker = get_worker()
    plugin = worker.plugins.get(NAME)
    if not isinstance(plugin, TrainingWorker) or plugin.token != job.token:
        former = plugin.former | {plugin.token} if isinstance(plugin, TrainingWorker) else frozenset()
        if job.token in former:
            raise MemberError(OTHER_JOB)
        sync(worker.loop, worker.plugin_add, plugin=TrainingWorker(job.token, former), name=NAME)
    member = worker_of(job.token)
    with member.exclusive(job.limits.step):
        return member.begin(job)


async def end_job(token: bytes, dask_worker: Worker) -> None:
    """Called in the worker's loop: end a job, also while it runs. No effect on a later job."""
    plugin = dask_worker.plugins.get(NAME)
    if isinstance(plugin, TrainingWorker) and plugin.token == token:
        await dask_worker.plugin_remove(name=NAME)


def take_state(token: bytes, arrays: dict[str, np.ndarray]) -> int:
    """Task: take a state and return its step."""
    member = worker_of(token)
    with member.exclusive(member.job.limits.step):
        member.set_state(arrays)
        return member.step


def carry_out(token: bytes, order: StepOrder) -> StepReport:
    """Task: run the steps of an order."""
    member = worker_of(token)
    with member.exclusive(member.job.limits.step):
        return member.carry_out(order)
