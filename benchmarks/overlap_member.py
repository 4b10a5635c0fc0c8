"""One process of `benchmarks.overlap`: training steps with sums after the backward pass, and with sums during it.

It writes a line when it is ready, reads the addresses of all members, and writes a line of JSON: for both ways wall
seconds of each step, processor seconds of one, seconds after which each piece is complete, and a digest of the weights.
Arguments: number of this member, number of members, its host, network, ``compute`` or ``replay``, shards, steps,
repeats.

With ``replay`` a shard's pieces come after the processor time that they need, while the thread sleeps: as if each
member had a core of its own, also where the machine has fewer or is busy.
"""

import json
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

import nn
from benchmarks.sum_members import say
from cgraph.dist.limits import Limits
from cgraph.engine.cpu.engine import CpuEngine
from nn.optim.optimiser import Optimiser
from nn.parallel import sharded_step
from nn.parallel.messages import FactorySource, Job, StepOrder
from nn.parallel.worker import TrainingWorker, digest
from nn.settings import StepSettings

NETWORKS = {"ResNet-20": (nn.models.resnet20, (3, 32, 32)), "LeNet": (nn.models.lenet, (1, 28, 28))}
BATCH, RUNS = 64, 12
WAYS = {"after": 1, "during": sharded_step.PIECES}  # pieces


def member(host: str, network: str, shards: int, pieces: int) -> TrainingWorker:
    """Return a worker of a training with at most so many pieces, as dask would start it."""
    make, image = NETWORKS[network]
    rng = np.random.default_rng(0)
    pictures, classes = rng.standard_normal((BATCH, *image), np.float32), rng.integers(0, 10, BATCH).astype(np.int32)
    settings = StepSettings(nn.losses.cross_entropy, Optimiser.of(None), options={"engine": CpuEngine(threads=1)})
    rows = BATCH // shards
    specs = [((rows, *image), "float32"), ((rows,), "int32")]
    sharded_step.PIECES = pieces
    source = FactorySource(lambda: make(0), settings, specs, shards, None)
    worker = TrainingWorker(b"b" * 32)
    worker.setup(SimpleNamespace(address=f"tcp://{host}:1", state=SimpleNamespace(nthreads=1)))
    worker.begin(Job(worker.token, source, 0, nn.Loader((pictures, classes), BATCH), 0, shards, Limits()))
    return worker


class Replay:
    """A Function whose outputs come after as long as the Function computes them. Immutable.

    Fields
        times: the least processor seconds after which each output was complete, in several runs
    """

    def __init__(self, function: Any, arrays: list[np.ndarray]) -> None:
        self.inputs, self.outputs = function.inputs, function.outputs
        self.results = list(function(*arrays))
        self.times = [float("inf")] * len(self.outputs)
        for _ in range(RUNS):
            began = time.thread_time()

            def complete(i: int, _: np.ndarray, began: float = began) -> None:
                self.times[i] = min(self.times[i], time.thread_time() - began)

            function.run_each(arrays, complete)

    def run_each(self, arrays: list[np.ndarray], complete: Callable[[int, np.ndarray], None]) -> None:
        began = time.perf_counter()
        for i in sorted(range(len(self.times)), key=self.times.__getitem__):
            time.sleep(max(0.0, began + self.times[i] - time.perf_counter()))
            complete(i, self.results[i].copy())


def main(me: int, members: int, host: str, network: str, kind: str, shards: int, steps: int, repeats: int) -> None:
    workers = {way: member(host, network, shards, pieces) for way, pieces in WAYS.items()}
    times = {way: Replay(worker.gradient, worker.arrays(me)) for way, worker in workers.items()}
    if kind == "replay":
        for way, worker in workers.items():
            worker.gradient = times[way]
    addresses = json.loads(say(json.dumps([worker.door.address for worker in workers.values()])))
    orders, meshes, figures = {}, {}, {}
    for i, (way, worker) in enumerate(workers.items()):
        doors, deal = [tuple(x[i]) for x in addresses], (shards // members,) * members
        orders[way] = StepOrder(1, me, doors, deal, 0, 0, 0, (), False)
        meshes[way] = worker.connect(orders[way])
        figures[way] = {"walls": [], "cpu": [], "pieces": times[way].times}
    for _ in range(repeats + 1):
        for way, worker in workers.items():
            run(worker, meshes[way], orders[way], steps, figures[way])
    for way, worker in workers.items():
        figures[way]["digest"] = digest(worker.update).hex()[:16]
        figures[way]["walls"] = figures[way]["walls"][steps:]  # the first round warms up
        figures[way]["cpu"] = min(figures[way]["cpu"])
    say("done")
    say(json.dumps(figures))


def run(worker: TrainingWorker, mesh: Any, order: StepOrder, steps: int, figures: dict[str, Any]) -> None:
    """Run some steps and add their times."""
    processor, worker.busy = time.process_time(), 0.0
    for _ in range(steps):
        began = time.perf_counter()
        worker.run_step(mesh, order)
        figures["walls"].append(time.perf_counter() - began)
    figures["cpu"].append((time.process_time() - processor) / steps)


if __name__ == "__main__":
    _, me, members, host, network, kind, shards, steps, repeats = sys.argv
    main(int(me), int(members), host, network, kind, int(shards), int(steps), int(repeats))
