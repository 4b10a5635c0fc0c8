"""Tables II and III of Cipolletta and Calimera (DATE 2021) on this project's own networks, at 3 × 224 × 224.

    python -m benchmarks.restructuring [run]

A figure is a saving of peak memory or extra operations, in percent; the rules are in `cgraph.budget.patches.tile_peak`.
`run`: bytes of the arena whole and in these patches, and the largest difference of the results, relative to the largest
score.
Each network below is also a MODEL of the command line: ``cgraph plan benchmarks.restructuring:vgg16 --paper``.
"""

import sys
from functools import partial

import numpy as np

import cgraph as cg
from cgraph.budget.patches.image_steps import ImageStep, image_steps
from cgraph.budget.patches.tile_peak import as_written, restructure
from nn import models

IMAGE = (1, 3, 224, 224)
TITLES = {
    "vgg16": "VGG-16",
    "mobilenet_v2": "MobileNetV2",
    "squeezenet1_1": "SqueezeNetV1.1",
    "resnet18": "ResNet18",
    "inception_v3": "InceptionV3",
}
Row = tuple[float, tuple[int, int], float, float]  # alpha, patches down and across, saving, extra operations
TABLE_2: dict[str, Row] = {
    "vgg16": (0.4, (2, 2), 67.5, 1.1),
    "mobilenet_v2": (0.3, (2, 2), 60.5, 3.0),
    "squeezenet1_1": (0.2, (2, 2), 48.4, 3.1),
    "resnet18": (0.4, (2, 2), 41.6, 11.9),
    "inception_v3": (0.6, (2, 2), 53.5, 1.4),
}
TABLE_3: dict[str, Row] = {
    "vgg16": (0.4, (2, 4), 75.0, 2.3),
    "mobilenet_v2": (0.3, (3, 4), 77.3, 7.8),
    "squeezenet1_1": (0.2, (2, 2), 48.4, 3.1),
    "resnet18": (0.4, (3, 3), 48.8, 25.7),
    "inception_v3": (0.6, (3, 3), 64.9, 3.9),
}


def vgg16() -> cg.Node:
    return network("vgg16")


def mobilenet_v2() -> cg.Node:
    return network("mobilenet_v2")


def squeezenet1_1() -> cg.Node:
    return network("squeezenet1_1")


def resnet18() -> cg.Node:
    return network("resnet18")


def inception_v3() -> cg.Node:
    """Return Inception v3 for 224 × 224 pixels, as in the paper, not for its own 299 × 299."""
    return network("inception_v3")


def network(name: str, weights: int | str | None = "zeros") -> cg.Node:
    return getattr(models, name)(weights)(cg.Var(IMAGE, name="image"))


def steps_of(name: str) -> list[ImageStep]:
    image = cg.Var(IMAGE)
    return image_steps((getattr(models, name)(None)(image),), (image,))


def measured(name: str, alpha: float, slices: tuple[int, int]) -> tuple[float, float]:
    """Return saving and extra operations in percent."""
    steps = steps_of(name)
    before, after = as_written(steps), restructure(steps, alpha, slices)
    return 100 * (1 - after.peak / before.peak), 100 * (after.work / before.work - 1)


def table(published: dict[str, Row]) -> list[str]:
    """Return a Markdown table: ours, and where it differs at the printed digit the published figure after a slash."""
    lines = ["| network | α | patches | saving, % | extra operations, % |", "|---|---|---|---|---|"]
    for name, (alpha, (rows, columns), *figures) in published.items():
        cells = " | ".join(cell(x, y) for x, y in zip(measured(name, alpha, (rows, columns)), figures))
        lines.append(f"| {TITLES[name]} | {alpha} | {rows}h, {columns}w | {cells} |")
    return lines


def cell(mine: float, published: float) -> str:
    return f"{mine:.1f}" if f"{mine:.1f}" == f"{published:.1f}" else f"{mine:.1f} / {published:.1f}"


def run_table() -> list[str]:
    """Return a Markdown table: each network whole and in the patches of both tables, on one random image, with random
    weights.
    """
    lines = ["| network | arena | in the patches of table II | of table III | results apart |", "|---|---|---|---|---|"]
    value = np.random.default_rng(0).standard_normal(IMAGE).astype("float32")
    for name, title in TITLES.items():
        image, model = cg.Var(IMAGE, name="image"), getattr(models, name)(0)
        compiled = partial(cg.compile, model(image), [image], freeze=list(model.variables().values()))
        whole = compiled()
        parts = [compiled(restructure=table[name][:2]) for table in (TABLE_2, TABLE_3)]
        want = whole(value)
        apart = max(float(abs(part(value) - want).max() / abs(want).max()) for part in parts)
        cells = " | ".join(f"{part.nbytes:,} ({100 * (1 - part.nbytes / whole.nbytes):.1f} %)" for part in parts)
        lines.append(f"| {title} | {whole.nbytes:,} | {cells} | {apart:.0e} |")
    return lines


def main() -> None:
    if "run" in sys.argv[1:]:
        print("\n".join(run_table()))
        return
    for title, rows in (("Table II", TABLE_2), ("Table III", TABLE_3)):
        print(f"## {title}\n")
        print("\n".join(table(rows)), end="\n\n")


if __name__ == "__main__":
    main()
