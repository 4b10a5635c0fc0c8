"""Lists of the kernels that common networks use, as text: one kernel in a line, ``family(params)``.

`python -m benchmarks.prebuilt` records them.
"""

import ast
from pathlib import Path

from cgraph.kernels.kernel import Kernel, Param
from cgraph.kernels.target import Target

FOLDER = Path(__file__).parent / "lists"


def listed(target: Target) -> list[Kernel]:
    """Return the kernels that are listed for targets of this name; with tiles, also those for tiles."""
    names = [target.name, *(["tiles"] if target.tiles else [])]
    paths = [path for name in names if (path := FOLDER / f"{name}.txt").exists()]
    return [kernel_of(line) for path in paths for line in path.read_text().splitlines()]


def line_of(kernel: Kernel) -> str | None:
    """Return a kernel as a line of a list; None if its params have values other than numbers and text."""
    line = f"{kernel.family}{kernel.params!r}"
    try:
        return line if kernel_of(line) == kernel else None
    except (ValueError, SyntaxError):
        return None


def kernel_of(line: str) -> Kernel:
    """Return the kernel of a line.

    Raises
        ValueError, SyntaxError: the line is not ``family(params)`` with numbers, text and tuples
    """
    family, bracket, _ = line.partition("(")
    params: tuple[Param, ...] = ast.literal_eval(line[len(family) :] if bracket else "")
    return Kernel(family, params)
