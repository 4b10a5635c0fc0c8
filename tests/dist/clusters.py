"""Clusters on this machine, and trainings whose bits are known."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from distributed import Client, LocalCluster

import nn
from cgraph.dist.limits import Limits
from cgraph.dist.tree import add_neighbours
from nn.parallel import data_parallel
from nn.parallel.sharded_step import KEY, halves, key_of
from nn.settings import StepSettings
from tests.support.patience import PATIENCE

LIMITS = Limits(round=0.3)
QUIET = {"dashboard_address": "127.0.0.1:0", "silence_logs": 50}


@contextmanager
def cluster(workers: int, processes: bool, **options) -> Iterator[Client]:
    """Workers on this machine; processes among them end with this one."""
    if processes:
        options["preload"] = [*options.get("preload", ()), "tests.dist.orphans"]
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, processes=processes, **QUIET, **options) as local,
        Client(local) as client,
    ):
        client.wait_for_workers(workers, timeout=PATIENCE)
        yield client


def network(seed: int = 0, width: int = 16) -> nn.Layer:
    """With dropout and batch norm, so that there are random keys and running statistics."""
    parts = (
        nn.Linear(8, width, use_bias=False),
        nn.BatchNorm(width),
        nn.Activation("relu"),
        nn.Dropout(0.2),
        nn.Linear(width, 3),
    )
    return nn.initialise(nn.Sequential(nn.Input((8,)), *parts), seed)


def loader(batch: int = 32, count: int = 128, **options) -> nn.Loader:
    x = np.random.default_rng(5).standard_normal((count, 8)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int32) + (x[:, 1] > 0)
    return nn.Loader((x, y.astype(np.int32)), batch, **options)


def optimiser() -> nn.Optimiser:
    optim = nn.optim
    return nn.Optimiser(
        optim.Adam(), optim.Cosine(0.02, 40, warmup=3), optim.Nesterov(0.8), optim.ClipL2(1.0), optim.L2(1e-3)
    )


def trained(client: Client, model: nn.Layer, data=None, *, shards: int = 8, **options) -> nn.History:
    options = {"optimiser": optimiser(), "progress": False, "limits": LIMITS, **options}
    return data_parallel(client, model, data or loader(), shards=shards, **options)


def alone(
    model: nn.Layer, data: nn.Loader, steps: int, shards: int, seed: int = 0, loss=nn.losses.cross_entropy, **options
) -> list:
    """The same training by hand: every shard here, added by the tree. Losses."""
    settings = StepSettings(loss, optimiser(), options=options)
    both = halves(model, settings, data.shard_at(0, 0, shards), shards)
    losses = []
    for step in range(steps):
        parts = []
        for shard in range(shards):
            arrays = list(data.shard_at(step, shard, shards))
            if both.gradient.inputs[-1].name == KEY:
                arrays.append(key_of(seed, step, shard))
            parts.append([((shard, 1), x) for x in both.gradient(*arrays)])
        totals = [total for piece in zip(*parts) for _, total in add_neighbours(piece)]
        losses.append(float(both.update(*totals)[0]))
    return losses


def digest(model: nn.Layer) -> str:
    """Of all weights and statistics."""
    values = (x.value for x in model.variables().values())
    return hashlib.sha256(b"".join(x.tobytes() for x in values)).hexdigest()[:16]
