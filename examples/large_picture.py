"""A picture larger than memory: filters, then a network over all of it, by rows, in an arena of 64 MiB.

python examples/large_picture.py [SIDE]     writes out/filtered.npy and out/segments.npy, SIDE x SIDE bytes each
"""

import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import cgraph as cg
from cgraph.errors import bytes_text

OUT = Path("out")
BUDGET = 64 << 20
ROWS = 8  # that the picture is made by


def picture(side: int) -> Iterator[np.ndarray]:
    """Rings and noise, ``[1, 1, rows, side]``, with the part that is done on standard error."""
    chance, across = np.random.default_rng(0), np.arange(side)
    for first in range(0, side, ROWS):
        down = np.arange(first, min(first + ROWS, side))[:, None]
        rings = (np.hypot(across - side / 2, down - side / 2).astype("int32") >> 6) % 2 * 120
        yield (rings + chance.integers(0, 100, rings.shape)).astype("uint8")[None, None]
        done = 40 * (first + len(down)) // side
        print(f"\r[{'=' * done}{' ' * (40 - done)}]", end="" if first + ROWS < side else "\n", file=sys.stderr)


def conv(x: cg.Node, channels: int, size: int, stride: int = 1) -> cg.Node:
    """A layer whose weights nobody has trained."""
    chance = np.random.default_rng(x.shape[1] + channels)
    filters = chance.standard_normal((channels, x.shape[1], size, size)) * (2 / x.shape[1]) ** 0.5 / size
    return cg.relu(cg.conv2d(x, filters.astype("float32"), stride, size // 2))


def filters(x: cg.Node) -> cg.Node:
    """Sharpened: what a blur takes away is added, in whole numbers again."""
    weights = np.outer(*[np.exp(-(np.arange(-2, 3) ** 2) / 2.0)] * 2)
    plain = x.astype("float32")
    blurred = cg.conv2d(plain, (weights / weights.sum()).astype("float32")[None, None], 1, 2)
    return cg.clip(plain + 1.5 * (plain - blurred), 0, 255).astype("uint8")


def network(x: cg.Node) -> cg.Node:
    """How much each pixel belongs to a ring: down to a sixteenth of the size, and up again beside an eighth."""
    early = conv(conv(x.astype("float32") / 255, 16, 3, 4), 32, 3, 2)
    late = conv(conv(cg.max_pool2d(early, 2), 32, 3), 32, 3)
    both = cg.concat([cg.resize(late, early.shape[2:], "linear", "half_pixel"), early], 1)
    scores = cg.resize(conv(both, 1, 3), x.shape[2:], "linear", "half_pixel")
    return (cg.sigmoid(scores) * 255).astype("uint8")


def through(x: cg.Var, y: cg.Node, source: Iterator[np.ndarray] | np.ndarray, name: str) -> np.ndarray:
    """What `y` is of the picture, in a mapped file."""
    begin = time.perf_counter()
    function = cg.compile(y, [x], rows=[x, y], budget=BUDGET)
    compiled = time.perf_counter()
    found = function(source, out=np.lib.format.open_memmap(OUT / f"{name}.npy", "w+", "uint8", y.shape))
    seconds = f"{compiled - begin:.1f} s compiling, {time.perf_counter() - compiled:.1f} s"
    peak = bytes_text(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10)
    print(f"{name}: {seconds}; arena {bytes_text(function.nbytes)}, process {peak} at most")
    return found


def main() -> None:
    OUT.mkdir(exist_ok=True)
    side = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    x = cg.Var((1, 1, side, side), "uint8", name="picture")
    filtered = through(x, filters(x), picture(side), "filtered")
    through(x, network(x), filtered, "segments")


if __name__ == "__main__":
    main()
