"""Heat spreads over a plate: one step is a graph, an update edge carries the plate from step to step.

python examples/heat.py          writes out/heat.png (Pillow) or out/heat.npy
"""

from pathlib import Path

import numpy as np

import cgraph as cg

OUT = Path("out")


def step_of(plate: cg.Var, rate: float) -> cg.Node:
    """One step of the five-point stencil; the border keeps its heat."""
    inside = plate[1:-1, 1:-1]
    spread = plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:] - 4 * inside
    return cg.set_slice(plate, (slice(1, -1), slice(1, -1)), inside + rate * spread)


def simulate(n: int = 256, steps: int = 500) -> np.ndarray:
    plate = cg.Var((n, n), "float32", "plate")
    start = np.zeros((n, n), "float32")
    start[0], start[:, 0] = 1.0, 0.5
    start[n // 3 : n // 2, n // 3 : n // 2] = 1.0
    plate.assign(start)
    advance = cg.compile([], updates={plate: step_of(plate, 0.2)})
    for _ in range(steps):
        advance()
    return plate.value


def main() -> None:
    OUT.mkdir(exist_ok=True)
    plate = simulate()
    print(f"mean heat {plate.mean():.4f}, hottest inside {plate[1:-1, 1:-1].max():.4f}")
    try:
        from PIL import Image
    except ImportError:
        np.save(OUT / "heat.npy", plate)
        return
    colours = np.stack([plate, plate**2, 0.3 * (1 - plate)], axis=-1)
    Image.fromarray((255 * np.clip(colours, 0, 1)).astype("uint8")).save(OUT / "heat.png")


if __name__ == "__main__":
    main()
