"""Times of networks computed whole and in bands of rows, in turns; medians.

    python -m benchmarks.bands [NETWORK ...] [--pixels N ...] [--threads N]

The regions are those of ``compile(bands=...)``, which are selected for bytes. One thread is measured by processor time,
several by the clock, since threads that wait for one another at the end of a band use the processor.
"""

import argparse
import statistics
import time
from collections.abc import Sequence

import cgraph as cg
from benchmarks.networks import NETWORKS, image_of
from nn.compile import freeze

SHOWN, PIXELS = ("mobilenet_v1", "mobilenet_v2", "densenet201"), (448, 1568)
ROUNDS = 15


def compiled(name: str, bands: int | None, threads: int) -> cg.Function:
    model = freeze(NETWORKS[name](0))
    image = cg.Var((1, *model.samples[0].shape), name="image")
    found = model(image)
    outputs = list(found) if isinstance(found, tuple) else [found]
    return cg.compile(outputs, [image], threads=threads, bands=bands)


def rows(name: str, pixels: Sequence[int], threads: int) -> list[str]:
    """Yield a line of a Markdown table for each way to compute a network."""
    clock = time.process_time if threads == 1 else time.perf_counter
    image, times = image_of(NETWORKS[name](None)), dict[int | None, list[float]]()
    ways = {bands: compiled(name, bands, threads) for bands in (None, *pixels)}
    for _ in range(ROUNDS + 1):
        for bands, function in ways.items():
            start = clock()
            function(image, copy=False)
            times.setdefault(bands, []).append(clock() - start)
    medians = {bands: statistics.median(found[1:]) for bands, found in times.items()}
    return [
        f"| {name} | {bands or 'whole'} | {ways[bands].nbytes:,} | {1e3 * medians[bands]:.2f} "
        f"| {medians[None] / medians[bands]:.3f} |"
        for bands in ways
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bands", description=__doc__)
    parser.add_argument("networks", nargs="*", default=SHOWN, metavar="NETWORK")
    parser.add_argument("--pixels", type=int, nargs="+", default=PIXELS, metavar="N")
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    args = parser.parse_args()
    print("| network | pixels of a band | arena | ms | whole / in bands |\n|---|---|---|---|---|")
    for name in args.networks:
        print("\n".join(rows(name, args.pixels, args.threads)), flush=True)


if __name__ == "__main__":
    main()
