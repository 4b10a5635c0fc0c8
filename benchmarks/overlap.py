"""Steps and sums over hosts with links of a rate: sums beside the backward pass, and the model of a sum. As root.

python -m benchmarks.overlap steps [SHARDS]     a step of two members: sums after the backward pass, or during it
python -m benchmarks.overlap replay [SHARDS]    the same, where each member has a core of its own; see `overlap_member`
python -m benchmarks.overlap model [MEMBERS ...]    a sum, beside the model of docs/development/dist.md

Hosts and links are those of `benchmarks.sums`; Linux.
"""

import os
import sys
from math import log2
from pathlib import Path

from benchmarks.sums import run_members, wires

SLOW = 5e9  # bits of an array for each Gb/s of the link, beyond which it is summed a few times only
RATES = 0.01, 0.1, 1, 10  # Gb/s
NETWORKS = {"ResNet-20": 1.09e6, "LeNet": 25.74e6}  # bytes of the gradients
HERE = Path(__file__).with_name("overlap_member.py")
SUMS = Path(__file__).with_name("sum_of_members.py")
LATENCY = 50e-6
MESSAGE = 12e-6  # of another member's frame in a sum by segments
EFFICIENCY = 0.92  # of a link, after the heads of Ethernet, IP and TCP


def steps(kind: str, shards: int) -> None:
    """Print the least milliseconds of a step of two members."""
    print("| network | link | pieces complete | sums after | during | ratio | processor: after | during | same bits |")
    for network, nbytes in NETWORKS.items():
        for rate in RATES:
            counts = (1, 2) if nbytes * 8 / rate > SLOW else (5, 5)
            with wires(2, rate) as hosts:
                reports = run_members(hosts, [sys.executable, HERE], [network, kind, shards, *counts])
            print(row(network, rate, reports), flush=True)


def row(network: str, rate: float, reports: list[dict]) -> str:
    ways = "after", "during"
    walls = {way: min(map(max, zip(*(x[way]["walls"] for x in reports)))) for way in ways}
    cpu = " | ".join(f"{1e3 * max(x[way]['cpu'] for x in reports):.0f}" for way in ways)
    same = len({x[way]["digest"] for x in reports for way in ways}) == 1
    times = f"{1e3 * walls['after']:.0f} | {1e3 * walls['during']:.0f} | {walls['during'] / walls['after']:.2f}"
    pieces = ", ".join(f"{1e3 * x:.0f}" for x in reports[0]["during"]["pieces"])
    return f"| {network} | {link(rate)} | {pieces} | {times} | {cpu} | {'yes' if same else 'NO'} |"


def model(members: list[int]) -> None:
    """Print milliseconds of a sum, the least of several, and those of the model."""
    print("| members | link | network | measured | model | measured / model |")
    for count in members:
        for rate in RATES:
            with wires(count, rate) as hosts:
                sizes = [f"{round(n / 4)}x{1 if n * 8 / rate > SLOW else 9}" for n in NETWORKS.values()]
                reports = run_members(hosts, [sys.executable, SUMS], sizes)
            for network, *times in zip(NETWORKS, *reports):
                seconds = min(map(max, zip(*times)))
                expected = seconds_of(count, NETWORKS[network], rate)
                figures = f"{1e3 * seconds:.1f} | {1e3 * expected:.1f} | {seconds / expected:.2f}"
                print(f"| {count} | {link(rate)} | {network} | {figures} |", flush=True)


def seconds_of(members: int, nbytes: float, rate: float) -> float:
    """Return the model's seconds of a sum: halving for a power of two, segments otherwise."""
    transfer = 2 * nbytes * (members - 1) / (members * EFFICIENCY * rate * 1e9 / 8)
    if members & (members - 1) == 0:
        return 2 * LATENCY * log2(members) + transfer
    return 2 * LATENCY + 2 * (members - 1) * MESSAGE + transfer


def link(rate: float) -> str:
    return f"{rate:g} Gb/s" if rate >= 1 else f"{1e3 * rate:g} Mb/s"


if __name__ == "__main__":
    kind, *numbers = sys.argv[1:] or ["steps"]
    print(f"load {os.getloadavg()[0]:.1f}")
    if kind == "model":
        model([*map(int, numbers)] or [2, 3, 4, 8])
    else:
        steps("compute" if kind == "steps" else kind, int(numbers[0]) if numbers else 2)
