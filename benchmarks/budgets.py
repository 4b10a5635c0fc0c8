"""How small do the five networks of `benchmarks.restructuring` get with the bits that they have?

    python -m benchmarks.budgets [direct]

For one image of 224 × 224 pixels, weights frozen: bytes of the arena (the image lies outside it) as planned, and in
bands of about 112 and 56 pixels and of a row; and how many bands the last has. Nothing runs. `direct`: no Winograd.
"""

import sys

import cgraph as cg
from benchmarks.restructuring import IMAGE, TITLES
from cgraph.ops.physical.stream import Stream
from nn import models

BANDS = (None, 112, 56, 1)  # pixels


def compiled(name: str, winograd: bool, bands: int | None) -> cg.Function:
    image = cg.Var(IMAGE, name="image")
    model = getattr(models, name)("zeros")
    return cg.compile(model(image), [image], freeze=list(model.variables().values()), winograd=winograd, bands=bands)


def bands_in(function: cg.Function) -> int:
    """Bands of all regions of a Function."""
    steps = function.compiled.layout.steps  # type: ignore[union-attr]
    return sum(not move.slides for node in steps if isinstance(node.op, Stream) for move in node.op.frame.moves)


def row(name: str, winograd: bool) -> str:
    whole, *parts = (compiled(name, winograd, bands) for bands in BANDS)
    cells = " | ".join(f"{part.nbytes:,} ({100 * (1 - part.nbytes / whole.nbytes):.1f} %)" for part in parts)
    return f"| {TITLES[name]} | {whole.nbytes:,} | {cells} | {bands_in(parts[-1])} |"


def table(winograd: bool) -> list[str]:
    """Markdown: bytes, and the saving against the plan without bands."""
    head = "| network | arena | bands of 112 px | of 56 px | of a row | bands of the last |"
    return [head, "|---|---|---|---|---|---|", *(row(name, winograd) for name in TITLES)]


if __name__ == "__main__":
    print("\n".join(table("direct" not in sys.argv[1:])))
