"""Faults of a network and of its hosts during a training: for the tests, and for the table of `benchmarks.hosts`."""

import time
from collections.abc import Callable, Iterable
from typing import Any

from tests.dist.hosts.cluster import CLIENT, CLIENT_TIMEOUT, SCHEDULER, SMALL, WORKERS, HostCluster
from tests.dist.hosts.links import FOREVER, LinkQuality
from tests.support.patience import PATIENCE

FIRST, SECOND, THIRD = WORKERS
HASTY = {"silence": 0.2, "answer": 2.0, "round": 0.3, "gather": PATIENCE}
Options = dict[str, Any]


def host_down(cluster: HostCluster, host: int, seconds: float = FOREVER, **options: Any) -> Options:
    """The link of one host is cut."""
    others = [x for x in (SCHEDULER, *WORKERS, CLIENT) if x != host]
    return cut(cluster, ([host, other] for other in others), seconds, **options)


def cut(cluster: HostCluster, pairs: Iterable[list[int]], seconds: float = FOREVER, **options: Any) -> Options:
    """Pairs of hosts exchange no frames, from the fifth step on."""
    order = cluster.order("cut", list(pairs), seconds)
    return {"order": order, "where": ["before_the_sum", 5, FIRST], "limits": HASTY, **options}


def slow_link(cluster: HostCluster, quality: LinkQuality, **options: Any) -> Options:
    cluster.switch.links[FIRST] = quality
    return {"limits": HASTY, **options}


def ends(cluster: HostCluster, action: str, host: int | str, **options: Any) -> Options:
    """A host's processes are killed or stopped by the fifth step."""
    return {"order": cluster.order(action, host), "where": ["before_the_sum", 5, FIRST], "limits": HASTY, **options}


FAULTS: dict[str, Callable[[HostCluster], Options]] = {
    "none": lambda x: {"limits": HASTY},
    "link of a worker down for 1 s": lambda x: host_down(x, FIRST, 1.0),
    "link of a worker down for 10 s": lambda x: host_down(x, FIRST, 10.0),
    "link of a worker down for good": lambda x: host_down(x, FIRST),
    "link of the client down for 2 s": lambda x: host_down(x, CLIENT, 2.0),
    "link of the scheduler down for 2 s": lambda x: host_down(x, SCHEDULER, 2.0),
    "two workers do not reach one another": lambda x: cut(x, [[FIRST, SECOND]]),
    "no worker reaches another": lambda x: cut(x, [[FIRST, SECOND], [FIRST, THIRD], [SECOND, THIRD]]),
    "the client reaches no worker": lambda x: cut(x, [[CLIENT, worker] for worker in WORKERS]),
    "100 ms delay, 5 % loss": lambda x: slow_link(x, LinkQuality(delay=0.1, loss=0.05), epochs=0.5),
    "10 Mb/s": lambda x: slow_link(x, LinkQuality(rate=1e7), epochs=0.5, width=10_000),
    "a worker is killed and comes back": lambda x: ends(x, "kill", FIRST),
    "a worker is stopped": lambda x: ends(x, "stop", FIRST),
    "the client is killed and comes back": lambda x: ends(x, "kill", CLIENT, checkpoint="at.json"),
    "the client's disk fills up": lambda x: ends(x, "fill", "filling", checkpoint=f"{SMALL}/at.json"),
}
"""By name, how each is prepared: it changes links, and returns the options of the training."""

LONG_FAULTS = {
    "link of the client down for longer than its time-out": lambda x: host_down(x, CLIENT, CLIENT_TIMEOUT + 6)
}
"""Those that the table has and the tests leave out."""


def train_with(cluster: HostCluster, name: str) -> tuple[dict[str, Any], list[dict[str, Any] | None], float]:
    """Train with a fault, and again from the checkpoint where a client was killed or gave up.

    Returns
        options of the training, what came of each attempt, and the seconds of all
    """
    options = {**FAULTS, **LONG_FAULTS}[name](cluster)
    began, attempts = time.monotonic(), []
    cluster.train(**options)
    attempts.append(cluster.answer())
    if attempts[0] is None or "error" in attempts[0]:
        if attempts[0] is not None:
            cluster.small("filling").unlink(missing_ok=True)
        attempts.append(cluster.outcome(**{**options, "order": None}))
    return options, attempts, time.monotonic() - began
