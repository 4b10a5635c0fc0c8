"""The smallest plans of the five networks of `benchmarks.restructuring` that keep their bits.

    python -m benchmarks.budgets [direct | seconds]

For one image of 224 × 224 pixels, weights frozen: bytes of the arena (the image is outside it) as planned, and in bands
of about 112 and 56 pixels and of one row; and the number of bands of the last. Nothing runs. `direct`: no Winograd.
`seconds`: processor seconds of a refusal, and of a compile within the least budget that it names.
"""

import re
import sys
from time import process_time
from typing import Any

import cgraph as cg
from benchmarks.restructuring import IMAGE, TITLES
from cgraph.ops.physical.stream import Stream
from nn import models

BANDS = (None, 112, 56, 1)  # pixels
Network = tuple[cg.Var, cg.Node, list[cg.Var]]


def compiled(name: str, **options: Any) -> cg.Function:
    image, scores, weights = made(name)
    return cg.compile(scores, [image], freeze=weights, **options)


def made(name: str) -> Network:
    """Return a network: its image, its scores, its weights."""
    image = cg.Var(IMAGE, name="image")
    model = getattr(models, name)("zeros")
    return image, model(image), list(model.variables().values())


def bands_in(function: cg.Function) -> int:
    """Return the number of bands of all regions of a Function."""
    steps = function.compiled.layout.steps  # type: ignore[union-attr]
    return sum(not move.slides for node in steps if isinstance(node.op, Stream) for move in node.op.frame.moves)


def row(name: str, winograd: bool) -> str:
    whole, *parts = (compiled(name, winograd=winograd, bands=bands) for bands in BANDS)
    cells = " | ".join(f"{part.nbytes:,} ({100 * (1 - part.nbytes / whole.nbytes):.1f} %)" for part in parts)
    return f"| {TITLES[name]} | {whole.nbytes:,} | {cells} | {bands_in(parts[-1])} |"


def table(winograd: bool) -> list[str]:
    """Return a Markdown table of the bytes, and the saving against the plan without bands."""
    head = "| network | arena | bands of 112 px | of 56 px | of a row | bands of the last |"
    return [head, "|---|---|---|---|---|---|", *(row(name, winograd) for name in TITLES)]


def within(network: Network, budget: int) -> cg.Function:
    image, scores, weights = network
    return cg.compile(scores, [image], freeze=weights, budget=budget)


def refused_at(network: Network) -> int:
    """Return the least budget that a refusal names."""
    try:
        within(network, 1)
    except cg.BudgetError as error:
        named = re.search(r"is (\d+) bytes", str(error))
        assert named is not None
        return int(named[1])
    raise AssertionError("a network fits in a byte")


def seconds(name: str) -> str:
    """Return processor seconds of a refusal, and of a compile within the least budget that it names."""
    network = made(name)
    within(network, refused_at(network))  # so that all kernels are in the cache
    start = process_time()
    least = refused_at(network)
    refused = process_time()
    within(network, least)
    return f"| {TITLES[name]} | {refused - start:.1f} | {process_time() - refused:.1f} |"


if __name__ == "__main__":
    if "seconds" in sys.argv[1:]:
        print("\n".join(seconds(name) for name in TITLES))
    else:
        print("\n".join(table("direct" not in sys.argv[1:])))
