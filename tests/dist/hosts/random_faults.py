"""Random faults of hosts and links, one after another, while trainings run: whatever happens, the bits are the same."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable

from tests.dist.hosts.cluster import CLIENT, SCHEDULER, WORKERS, HostCluster
from tests.dist.hosts.faults import HASTY
from tests.dist.hosts.links import LinkQuality

HOSTS = SCHEDULER, *WORKERS, CLIENT
LONGEST = 6.0  # seconds of a fault
PAUSE = 3.0  # mean seconds between faults
CHECKPOINT = "random.json"


class Outcome:
    """What came of trainings. Mutable: with each of them.

    Fields
        trainings: number of trainings that ended with the expected bits
        faults: number of faults of each kind
        restarts: number of attempts that ended early, by the error, or "killed"
        others: descriptions of trainings with other bits
    """

    def __init__(self) -> None:
        self.trainings, self.seconds = 0, 0.0
        self.faults, self.restarts = Counter[str](), Counter[str]()
        self.others: list[str] = []


def train_for(cluster: HostCluster, seconds: float, seed: int, epochs: int, digest: str) -> Outcome:
    """Train again and again for some seconds while faults happen.

    Parameters
        epochs: of each training
        digest: of the weights after it, from an undisturbed training
    """
    outcome, over, began = Outcome(), threading.Event(), time.monotonic()
    faults = Faults(cluster, random.Random(seed), outcome)
    thread = threading.Thread(target=faults.run, args=(over,))
    thread.start()
    try:
        while time.monotonic() - began < seconds:
            train_once(cluster, epochs, digest, outcome)
    finally:
        over.set()
        thread.join()
    outcome.seconds = time.monotonic() - began
    return outcome


def train_once(cluster: HostCluster, epochs: int, digest: str, outcome: Outcome) -> None:
    """Run one training to its end, from its checkpoint whenever it ends early."""
    for path in cluster.folder.glob("random*"):
        path.unlink()
    answer = None
    while answer is None or "error" in answer:
        cluster.train(workers=1, epochs=epochs, checkpoint=CHECKPOINT, limits=HASTY)
        answer = cluster.answer()
        if answer is None or "error" in answer:
            outcome.restarts["killed" if answer is None else f"{answer['error']}: {answer['text'][:60]}"] += 1
    if answer["digest"] == digest:
        outcome.trainings += 1
    else:
        outcome.others.append(f"{answer['digest']} instead of {digest}")


class Faults:
    """Draws faults. Mutable: the links and processes of a cluster."""

    def __init__(self, cluster: HostCluster, rng: random.Random, outcome: Outcome) -> None:
        self.cluster, self.rng, self.outcome = cluster, rng, outcome
        self.kinds: tuple[Callable[[], None], ...] = (
            self.host_down, self.pair_cut, self.partition, self.bad_link, self.kill_worker, self.stop_worker,
            self.kill_client,
        )  # fmt: skip

    def run(self, over: threading.Event) -> None:
        while not over.wait(self.rng.expovariate(1 / PAUSE)):
            (kind,) = self.rng.choices(self.kinds, weights=(8, 8, 4, 8, 4, 4, 1))
            self.outcome.faults[kind.__name__] += 1
            kind()
        self.cluster.switch.mend()
        for number in WORKERS:
            self.cluster.resume(number)

    @property
    def seconds(self) -> float:
        return self.rng.uniform(0.1, LONGEST)

    def host_down(self) -> None:
        one = self.rng.choice(HOSTS)
        self.cluster.switch.cut([[one, x] for x in HOSTS if x != one], self.seconds)

    def pair_cut(self) -> None:
        self.cluster.switch.cut([self.rng.sample(HOSTS, 2)], self.seconds)

    def partition(self) -> None:
        inside = self.rng.sample(HOSTS, 2)
        self.cluster.switch.cut([[x, y] for x in inside for y in HOSTS if y not in inside], self.seconds)

    def bad_link(self) -> None:
        quality = LinkQuality(10 ** self.rng.uniform(7, 10), self.rng.uniform(0, 0.05), self.rng.uniform(0, 0.05))
        self.cluster.switch.links[self.rng.choice(HOSTS)] = self.rng.choice((quality, LinkQuality()))

    def kill_worker(self) -> None:
        self.cluster.kill(self.rng.choice(WORKERS))

    def stop_worker(self) -> None:
        one = self.rng.choice(WORKERS)
        self.cluster.stop(one)
        threading.Timer(self.seconds, self.cluster.resume, (one,)).start()

    def kill_client(self) -> None:
        self.cluster.kill(CLIENT)
