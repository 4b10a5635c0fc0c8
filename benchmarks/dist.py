"""Several processes: sums over sockets, training whose workers are killed, functions over dask arrays.

python -m benchmarks.dist sums [MEMBERS]        milliseconds of a sum, and of torch's gloo where torch is installed
python -m benchmarks.dist train [MEMBERS] [STEPS]   ResNet-20: milliseconds a step, digests, what a death costs
python -m benchmarks.dist blocks [WORKERS]      ResNet-20 over 4,096 pictures, against one process
"""

import hashlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from multiprocessing import get_context
from statistics import median
from typing import Any

import numpy as np

import nn
from cgraph.dist.limits import Limits
from cgraph.dist.mesh import Mesh
from cgraph.dist.sockets import Door, Secrets
from cgraph.dist.sums import peers_of, sum_over_members

NETWORKS = {"ResNet-20": 270_000, "LeNet": 6_450_000}  # float32 gradients
ROUNDS, SHARDS = 21, 8


def sums(members: int) -> None:
    print(f"{members} processes | " + " | ".join(f"{name} {4e-6 * n:.2f} MB" for name, n in NETWORKS.items()))
    for label, work in (("own sockets", own_sums), ("torch gloo", gloo_sums)):
        print(label, *(f"{1e3 * x:.1f}" for x in together(members, work)), sep=" | ")


def together(members: int, work: Callable[..., list[float]]) -> list[float]:
    """Return the measurement of the slowest of some processes, by network; nothing if one fails."""
    context = get_context("spawn")
    to_all, back = [context.Queue() for _ in range(members)], context.Queue()
    processes = [context.Process(target=work, args=(i, members, to_all, back)) for i in range(members)]
    for x in processes:
        x.start()
    found = [back.get(timeout=300) for _ in processes]
    for x in processes:
        x.join()
    return [max(times) for times in zip(*found)]


def own_sums(me: int, members: int, to_all: list, back: Any) -> None:
    deal, limits = [SHARDS // members] * members, Limits()
    with closing(Door("127.0.0.1", Secrets(b"b" * 32), limits)) as door:
        for queue in to_all:
            queue.put((me, door.address))
        doors = [address for _, address in sorted(to_all[me].get(timeout=60) for _ in range(members))]
        with closing(Mesh(door, 1, me, doors, peers_of(me, deal), limits)) as mesh:
            found = []
            for n in NETWORKS.values():
                x, part = np.ones(n, np.float32), (sum(deal[:me]), deal[me])
                found.append(timed(lambda step, x=x, part=part: sum_over_members(mesh, step, deal, [(part, x)])))
            back.put(found)
            sum_over_members(mesh, 1 << 20, deal, [(part, x)])  # no process closes before all have measured


def gloo_sums(me: int, members: int, to_all: list, back: Any) -> None:
    try:
        import torch
        from torch import distributed
    except ImportError:
        back.put([])
        return
    torch.set_num_threads(1)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517", "GLOO_SOCKET_IFNAME": "lo"}
    distributed.init_process_group("gloo", rank=me, world_size=members)
    arrays = [torch.ones(n) for n in NETWORKS.values()]
    back.put([timed(lambda _, x=x: distributed.all_reduce(x)) for x in arrays])
    distributed.barrier()
    distributed.destroy_process_group()


def timed(work: Callable[[int], Any]) -> float:
    times = []
    for step in range(ROUNDS):
        began = time.perf_counter()
        work(step)
        times.append(time.perf_counter() - began)
    return median(times[1:])


def train(members: int, steps: int) -> None:
    from distributed import Client, LocalCluster

    from nn.parallel import coordinator

    rng = np.random.default_rng(0)
    images = rng.standard_normal((512, 3, 32, 32), np.float32)
    data = nn.Loader((images, rng.integers(0, 10, 512).astype(np.int32)), batch=64)
    orders: list[tuple[float, int, bool]] = []
    original = coordinator.Coordinator.run_order

    def run_order(self: Any, *args: Any) -> list:
        began = time.perf_counter()
        reports = original(self, *args)
        steps = max((len(x.results) for x in reports), default=0)
        orders.append((time.perf_counter() - began, steps, any(x.lost for x in reports)))
        return reports

    coordinator.Coordinator.run_order = run_order  # type: ignore[method-assign]
    for end in (None, signal.SIGKILL, signal.SIGSTOP) if members > 1 else (None,):
        options = {
            "n_workers": members,
            "threads_per_worker": 1,
            "dashboard_address": "127.0.0.1:0",
            "silence_logs": 50,
        }
        with LocalCluster(**options) as cluster, Client(cluster) as client:
            if end is not None:
                pid = list(client.run(os.getpid).values())[-1]
                threading.Timer(8.0, os.kill, (pid, end)).start()
            orders.clear()
            model = nn.models.resnet20(0)
            nn.data_parallel(client, model, data, epochs=steps / 8, shards=SHARDS, progress=False)
        whole = [(seconds, made) for seconds, made, lost in orders[2:] if made and not lost]
        pace = sum(x for x, _ in whole) / max(sum(n for _, n in whole), 1)
        lost = [f"{seconds - made * pace:.2f}" for seconds, made, lost in orders if lost]
        digest = hashlib.sha256(b"".join(x.value.tobytes() for x in model.variables().values())).hexdigest()[:16]
        name = "nobody dies" if end is None else end.name
        print(f"{members} members | {name} | {1e3 * pace:.0f} ms a step | digest {digest} | lost s: {', '.join(lost)}")


def blocks(workers: int) -> None:
    import dask.array as da
    from distributed import Client, LocalCluster

    images = np.random.default_rng(0).standard_normal((4096, 3, 32, 32), np.float32)
    predict = nn.compile(nn.models.resnet20(0), batch=64, threads=1)
    predict(images[:64])
    began = time.perf_counter()
    want = predict(images)
    alone = time.perf_counter() - began
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        x = client.persist(da.from_array(images, chunks=(256, 3, 32, 32)))
        predict.map_batches(x[:512]).compute()
        began = time.perf_counter()
        found = predict.map_batches(x).compute()
        spread = time.perf_counter() - began
    same = "same bits" if (found == want).all() else "other bits"
    print(f"{workers} workers {spread:.2f} s, one process {alone:.2f} s, {same}")


if __name__ == "__main__":
    kind, *numbers = sys.argv[1:] or ["sums"]
    {"sums": sums, "train": lambda members, steps=160: train(members, steps), "blocks": blocks}[kind](
        *(map(int, numbers) if numbers else (2,))
    )
