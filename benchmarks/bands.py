"""Do bands of rows make a network faster? Processor milliseconds of one thread, whole and in bands, in turns.

    python -m benchmarks.bands [networks] [pixels of a band]

The regions are those of ``compile(bands=...)``, which are chosen for bytes. One thread, since threads that wait for one
another at the end of a band use the processor.
"""

import statistics
import sys
import time
from collections.abc import Sequence

import cgraph as cg
from benchmarks.networks import NETWORKS, image_of
from nn.compile import freeze

SHOWN, PIXELS = ("mobilenet_v1", "mobilenet_v2", "densenet201"), (448, 1568)
ROUNDS = 15


def compiled(name: str, bands: int | None) -> cg.Function:
    model = freeze(NETWORKS[name](0))
    image = cg.Var((1, *model.samples[0].shape), name="image")
    found = model(image)
    outputs = list(found) if isinstance(found, tuple) else [found]
    return cg.compile(outputs, [image], threads=1, bands=bands)


def rows(name: str, pixels: Sequence[int]) -> list[str]:
    """A line of a Markdown table for each way to compute a network."""
    image, times = image_of(NETWORKS[name](None)), dict[int | None, list[float]]()
    ways = {bands: compiled(name, bands) for bands in (None, *pixels)}
    for _ in range(ROUNDS + 1):
        for bands, function in ways.items():
            start = time.process_time()
            function(image, copy=False)
            times.setdefault(bands, []).append(time.process_time() - start)
    medians = {bands: statistics.median(found[1:]) for bands, found in times.items()}
    return [
        f"| {name} | {bands or 'whole'} | {ways[bands].nbytes:,} | {1e3 * medians[bands]:.2f} "
        f"| {medians[None] / medians[bands]:.3f} |"
        for bands in ways
    ]


def main(words: Sequence[str]) -> None:
    pixels = [int(word) for word in words if word.isdigit()] or PIXELS
    print("| network | pixels of a band | arena | ms | whole / in bands |\n|---|---|---|---|---|")
    for name in [name for name in NETWORKS if name in words] or SHOWN:
        print("\n".join(rows(name, pixels)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
