"""Sums over hosts with links of a rate: our mesh, dask's comms, and torch's gloo. Linux, as root.

python -m benchmarks.sums [MEMBERS ...]     2, 3 and 4 hosts at 1 and 10 Gb/s

Hosts are network namespaces with one veth each to a bridge; `tc tbf` limits both directions. TORCH_PYTHON names an
interpreter with torch if this one has none. Prints the best of all sums of the slowest member, in milliseconds, then
the processor's milliseconds of one member.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.dist.hosts.links import enter_namespace

SIZES = 1, 10, 100
RATES = 1, 10  # Gb/s
BURST = 4e-4  # seconds in which a link may be faster
REPEATS = 1
HERE = Path(__file__).with_name("sum_members.py")
LIBRARIES = {"own": sys.executable, "dask": sys.executable, "gloo": os.environ.get("TORCH_PYTHON", sys.executable)}


def shaped(rate: float, device: str) -> str:
    burst = max(16_000, round(rate * 1e9 / 8 * BURST))
    return f"tc qdisc add dev {device} root tbf rate {round(rate * 1e9)}bit burst {burst} latency 200ms"


@contextmanager
def wires(members: int, rate: float) -> Iterator[list[ThreadPoolExecutor]]:
    """Threads, each in a network namespace of its own with an interface of a limited rate, in Gb/s."""
    with ExitStack() as stack:
        threads = [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(members + 1)]
        ids = [thread.submit(enter_namespace).result() for thread in threads]
        *hosts, bridge = threads
        run(bridge, "ip link add bridge type bridge", "ip link set bridge up")
        for i, thread in enumerate(hosts):
            run(
                bridge,
                f"ip link add v{i} type veth peer name eth0 netns {ids[i]}",
                f"ip link set v{i} master bridge up",
            )
            run(bridge, shaped(rate, f"v{i}"))
            run(thread, "ip link set lo up", f"ip addr add 10.78.0.{i + 1}/24 dev eth0", "ip link set eth0 up")
            run(thread, shaped(rate, "eth0"))
        yield hosts


def run(thread: ThreadPoolExecutor, *commands: str) -> None:
    for command in commands:
        thread.submit(subprocess.run, command.split(), check=True).result()


def together(library: str, hosts: list[ThreadPoolExecutor]) -> list[dict]:
    """Return what each member measures."""
    return run_members(hosts, [LIBRARIES[library], HERE, library], SIZES)


def run_members(hosts: list[ThreadPoolExecutor], program: Sequence, arguments: Sequence) -> list:
    """Run a program on each host, exchange the members' addresses, and return what each writes at the end.

    Its arguments are the number of the member, the number of members, its address, and `arguments`.
    """
    processes = []
    for i, thread in enumerate(hosts):
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
        command = [*map(str, [*program, i, len(hosts), f"10.78.0.{i + 1}", *arguments])]
        processes.append(thread.submit(subprocess.Popen, command, env=environment, **options).result())
    addresses = [json.loads(x.stdout.readline()) for x in processes]
    for line in (json.dumps(addresses), "done"):
        if line == "done":
            assert all(x.stdout.readline() == "done\n" for x in processes)
        for x in processes:
            x.stdin.write(line + "\n")
            x.stdin.flush()
    return [json.loads(x.communicate("\n")[0]) for x in processes]


def measure(members: int, rate: int) -> None:
    best: dict[str, list[dict]] = {library: [] for library in LIBRARIES}
    with wires(members, rate) as hosts:
        for _ in range(REPEATS):
            for library in LIBRARIES:
                if library != "dask" or members & (members - 1) == 0:
                    best[library] += together(library, hosts)
    for library, reports in best.items():
        if reports:
            walls = [1e3 * max(min(x[str(s)]["walls"]) for x in reports[-members:]) for s in SIZES]
            walls = [
                min(w, 1e3 * max(min(x[str(s)]["walls"]) for x in reports[:members])) for w, s in zip(walls, SIZES)
            ]
            cpu = [1e3 * min(x[str(s)]["cpu"] for x in reports) for s in SIZES]
            wrong = max(x[str(s)]["wrong"] for x in reports for s in SIZES)
            figures = " | ".join(f"{x:.1f}" for x in (*walls, *cpu))
            print(f"| {members} | {rate} Gb/s | {library} | {figures} | {100 * wrong:.0f} % |", flush=True)


if __name__ == "__main__":
    sizes = " | ".join(f"{x} MB" for x in SIZES)
    print(f"| hosts | link | library | {sizes} | processor: {sizes} | elements unlike the tree's |")
    for members in map(int, sys.argv[1:] or (2, 3, 4)):
        for rate in RATES:
            measure(members, rate)
