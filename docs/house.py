"""The picture of the packages for architecture.md: one row for each layer of the import contract.

The rows come from pyproject.toml, so the picture shows what `make check` enforces. Numbers mark the packages that a
compile passes through, letters those of a call.
"""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUBJECTS = {
    "nn": "layers, networks, training",
    "cli": "the command cgraph",
    "view": "pictures, reports, traces",
    "formats": "ONNX, TFLite, Keras …",
    "array_api": "the array API standard",
    "quantiser": "int8 networks from float",
    "dist": "several processes",
    "standalone": "object files with a C header",
    "transforms": "jit, grad, vmap",
    "sizes": "one Function, many sizes",
    "function": "compile, Function",
    "precision": "which layers round",
    "saved": "saved Functions",
    "running": "a call of a program",
    "engine": "cpu, cuda, cuda-sim, reference",
    "planning": "physical graph → checked plan",
    "budget": "bands, patches: fit into bytes",
    "rematerialise": "compute values again",
    "lowering": "layouts, packed constants",
    "passes": "graph → smaller graph",
    "autodiff": "gradients",
    "batching": "many examples at once",
    "schedule": "running order",
    "memory": "offsets, bounds, checks",
    "numpy": "NumPy's functions on nodes",
    "ops": "what each op means and costs",
    "storage": "cells of Vars, weight files",
    "ir": "nodes, specs, traversal",
    "kernels": "machine code, by family",
    "dtypes": "storage dtypes, conversion",
    "system": "files, locks, progress",
    "errors": "typed errors",
    "record": "frozen values",
    "slots": "calls from below to above",
    "version": "",
    "terminal": "safe text for terminals",
    "tracebacks": "tracebacks of the user's lines",
    "collector": "rare collections",
    "late": "late modules",
}
COMPILE = {
    "function": 1,
    "passes": 2,
    "lowering": 3,
    "planning": 4,
    "schedule": 5,
    "memory": 6,
    "budget": 7,
    "engine": 8,
}
COMPILE |= {"kernels": 9}
CALL = {"running": "a", "storage": "b", "memory": "c", "engine": "d", "kernels": "e"}
WIDTH, HEIGHT, ROW, GAP, EDGE = 1120, 40, 46, 6, 12
STYLE = (
    "text{fill:#1d2733;font-family:ui-sans-serif,system-ui,sans-serif}.n{font-size:13px;font-weight:600}"
    ".s{font-size:11px;fill:#52606d}.c{font-size:11px;font-weight:600;fill:#fff;text-anchor:middle}"
)


def layers() -> list[list[str]]:
    """The rows of the import contract from the top, each with its packages by their last name."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    return [[name.strip().removeprefix("cgraph.") for name in row.split("|")] for row in contract["layers"]]


def house() -> str:
    """The picture as SVG: a package may import the packages below it, and none beside it."""
    rows = layers()
    height = len(rows) * ROW + 2 * EDGE + 26
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">',
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
    ]
    for i, row in enumerate(rows):
        width = (WIDTH - 2 * EDGE - GAP * (len(row) - 1)) / len(row)
        for j, name in enumerate(row):
            parts += package(name, EDGE + j * (width + GAP), EDGE + i * ROW, width)
    return "\n".join([*parts, *legend(height - 20), "</svg>"]) + "\n"


def package(name: str, x: float, y: float, width: float) -> list[str]:
    """One box: the package, its subject, and its places in a compile and in a call."""
    marks = [(str(number), "#2563a6") for number in (COMPILE.get(name),) if number]
    marks += [(letter, "#b3541e") for letter in (CALL.get(name),) if letter]
    text = f'<tspan class="n">{name}</tspan> <tspan class="s" dx="4">{SUBJECTS[name]}</tspan>'
    box = f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{HEIGHT}" rx="6" fill="#eef3f8" stroke="#9fb3c8"/>'
    lines = [box, f'<text x="{x + 10:.1f}" y="{y + 25}">{text}</text>']
    if width < 240:  # two lines
        lines[1:] = [
            f'<text class="n" x="{x + 10:.1f}" y="{y + 17}">{name}</text>',
            f'<text class="s" x="{x + 10:.1f}" y="{y + 32}">{SUBJECTS[name]}</text>',
        ]
    for i, (mark, colour) in enumerate(reversed(marks)):
        lines += circle(mark, colour, x + width - 14 - 20 * i, y + 13)
    return lines


def circle(mark: str, colour: str, x: float, y: float) -> list[str]:
    """A numbered circle."""
    return [
        f'<circle cx="{x:.1f}" cy="{y}" r="9" fill="{colour}"/>',
        f'<text class="c" x="{x:.1f}" y="{y + 4}">{mark}</text>',
    ]


def legend(y: float) -> list[str]:
    """The words for numbers and letters."""
    words = (
        "the way of a compile",
        "the way of a call",
        "imports go down only; packages of one row do not import one another",
    )
    lines = [*circle("1", "#2563a6", 24, y), *circle("a", "#b3541e", 204, y)]
    return lines + [f'<text class="s" x="{x}" y="{y + 4}">{text}</text>' for x, text in zip((40, 220, 380), words)]
