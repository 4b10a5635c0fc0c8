"""Emulated hosts: what faults cost, random faults, and sums over links of limited rate. Linux, as root.

python -m benchmarks.hosts table               each fault, its outcome and the seconds that it costs
python -m benchmarks.hosts random [SECONDS] [SEED]    random faults while trainings run; 1800 seconds without numbers
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from tests.dist.clusters import alone, digest, loader, network
from tests.dist.hosts.cluster import WORKERS, HostCluster, host_cluster, missing
from tests.dist.hosts.faults import FAULTS, LONG_FAULTS, train_with
from tests.dist.hosts.random_faults import train_for

EPOCHS = 8


def table() -> None:
    """Print the faults, and seconds in excess of a training without one (median of five)."""
    plain: dict[str, float] = {}
    with cluster() as hosts:
        hosts.outcome(epochs=3)  # compiles, and starts the client
        for name in [x for x in {**FAULTS, **LONG_FAULTS} if x != "none"]:
            options, attempts, seconds = train_with(hosts, name)
            hosts.switch.mend()
            hosts.resume(WORKERS[0])
            same = {key: options[key] for key in ("epochs", "width", "limits") if key in options}
            hosts.outcome(**same)  # all workers are back
            key = str(same)
            plain[key] = plain.get(key) or median(hosts.outcome(**same)["seconds"] for _ in range(5))
            answer = attempts[-1]
            outcome = "same bits" if answer and answer["digest"] == digest_of(options) else f"FAILED: {answer}"
            first = attempts[0] if len(attempts) > 1 else {}
            note = "killed, then " if first is None else f"{first['error']}, then " if first else ""
            print(f"| {name} | {note}{outcome} | {seconds - plain[key]:.1f} |", flush=True)


def digest_of(options: dict) -> str:
    """Return the digest after the same training in this process."""
    model = network(width=options.get("width", 16))
    alone(model, loader(), round(4 * options.get("epochs", 3)), 8)
    return digest(model)


def random(seconds: float = 1800, seed: int = 0) -> None:
    """Print how trainings fare under random faults."""
    with cluster() as hosts:
        hosts.outcome(epochs=3)
        x = train_for(hosts, seconds, int(seed), EPOCHS, digest_of({"epochs": EPOCHS}))
    print(
        f"{x.seconds:.0f} s, {x.trainings} trainings of {4 * EPOCHS} steps with the same bits, {len(x.others)} others"
    )
    print(f"{sum(x.faults.values())} faults:", ", ".join(f"{n} {kind}" for kind, n in x.faults.most_common()))
    print("continued from a checkpoint:", ", ".join(f"{n} {why}" for why, n in x.restarts.most_common()) or "never")
    print(*x.others, sep="\n")
    sys.exit(bool(x.others))


@contextmanager
def cluster() -> Iterator[HostCluster]:
    if missing():
        sys.exit(missing())
    with tempfile.TemporaryDirectory() as folder, host_cluster(Path(folder)) as hosts:
        yield hosts


if __name__ == "__main__":
    kind, *numbers = sys.argv[1:] or ["table"]
    {"table": table, "random": random}[kind](*map(float, numbers))
