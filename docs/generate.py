"""Write the generated files: planner tables, ops.md, excerpts of code, two pictures, stubs that type checkers read.

    python -m docs.generate [--timed]

In development/planner_tables.md a generated block stands between ``<!-- name -->`` and ``<!-- end -->``. Blocks with
times differ from run to run and are written with ``--timed`` only; the benchmark behind one of them takes minutes. In
add_a_kernel.md ``<!-- path: first line .. last line -->`` stands before an excerpt; both lines are named by a part.
"""

import re
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path
from pkgutil import walk_packages

import cgraph.ops
import cgraph.view  # noqa: F401 - pictures are among the functions
from benchmarks import memory_tables as tables
from benchmarks import minimalloc, restructuring
from benchmarks.plan_sizes import planned
from cgraph.ir.graph import OPS, Op
from cgraph.view.planned import function_svg
from docs.house import house
from docs.stub import stubs

DOCS = Path(__file__).parent
TABLES = DOCS / "development" / "planner_tables.md"
BLOCK = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
EXCERPT = re.compile(r"(<!-- (\S+): (.+?) \.\. (.+?) -->\n```python\n).*?```", re.DOTALL)
FACETS = {"view": "alias", "gradient": "grad", "kernel": "work", "bands": "cut"}


def main() -> None:
    blocks = BLOCKS | (TIMED if "--timed" in sys.argv[1:] else {})
    TABLES.write_text(filled(TABLES.read_text(), blocks))
    (DOCS / "ops.md").write_text(ops_page())
    page = DOCS / "add_a_kernel.md"
    page.write_text(with_excerpts(page.read_text()))
    (DOCS / "memory_plan.svg").write_text(plan_picture())
    (DOCS / "architecture.svg").write_text(house())
    for path, text in stubs().items():
        path.write_text(text)


def filled(page: str, blocks: dict[str, Callable[[], list[str]]]) -> str:
    """Return a page with these blocks computed again and the others unchanged."""

    def block(match: re.Match[str]) -> str:
        make = blocks.get(match[2])
        return match[0] if make is None else "\n".join([match[1].rstrip(), *make(), match[3]])

    return BLOCK.sub(block, page)


def with_excerpts(page: str) -> str:
    """A page with its excerpts copied from the code: the lines from the first to the last that a marker names."""

    def excerpt(match: re.Match[str]) -> str:
        lines = (DOCS.parent / match[2]).read_text().splitlines()
        first = next(i for i, line in enumerate(lines) if match[3] in line)
        last = next(i for i in range(first, len(lines)) if match[4] in lines[i])
        return match[1] + "\n".join([*lines[first : last + 1], "```"])

    return EXCERPT.sub(excerpt, page)


def code(lines: list[str]) -> list[str]:
    return ["```", *lines, "```"]


def sizes() -> list[str]:
    """The plan sizes of the tests."""
    return code((DOCS.parent / "tests" / "memory" / "plan_sizes.txt").read_text().splitlines())


def minimalloc_rows() -> list[str]:
    output = StringIO()
    with redirect_stdout(output):
        minimalloc.main(minimalloc.FOLDER)
    return code(output.getvalue().splitlines())


BLOCKS: dict[str, Callable[[], list[str]]] = {
    "blocks": lambda: tables.table(tables.BLOCK_TABLE, tables.OWN_ROWS[:2]),
    "offsets": lambda: tables.table(tables.OFFSET_TABLE, tables.OWN_ROWS[2:]),
    "agreement": tables.agreement,
    "orders": tables.order_table,
    "patches2": lambda: restructuring.table(restructuring.TABLE_2),
    "patches3": lambda: restructuring.table(restructuring.TABLE_3),
    "sizes": sizes,
}
TIMED: dict[str, Callable[[], list[str]]] = {"timings": tables.timings, "minimalloc": minimalloc_rows}


def plan_picture() -> str:
    """The README's picture: the bytes of a network's values, step by step."""
    return function_svg(planned("squeezenet1_1", "lowered"), "SqueezeNet 1.1, 224 x 224")


# -- ops.md -----------------------------------------------------------------------------------------------------------


def ops_page() -> str:
    """Every public function, and every op with its facets."""
    lines = [
        "# Ops",
        "",
        "Written by `python -m docs.generate`. Call a function as `cgraph.name`; many are also NumPy functions. "
        "Each node of a graph has an op. A facet is one aspect of an op: see `cgraph/ir/graph.py`.",
        "",
        "## Functions",
        "",
        "| function | result |",
        "|---|---|",
        *(f"| `{name}` | {summary(function)} |" for name, function in sorted(OPS.items())),
    ]
    for module, ops in sorted(ops_by_module().items()):
        lines += ["", f"## Ops of `{module}`", "", *facet_table(ops)]
    return "\n".join(lines) + "\n"


def ops_by_module() -> dict[str, list[type[Op]]]:
    """The ops that have a shape rule and a meaning or a kernel, by the module that defines them."""
    for module in walk_packages(cgraph.ops.__path__, "cgraph.ops."):
        import_module(module.name)
    by_module: dict[str, list[type[Op]]] = {}
    waiting: list[type[Op]] = [Op]
    while waiting:
        op = waiting.pop()
        waiting += op.__subclasses__()
        if has(op, "infer") and (has(op, "meaning") or has(op, "work")) and op.__module__.startswith("cgraph."):
            by_module.setdefault(op.__module__, []).append(op)
    return {module: sorted(ops, key=lambda op: op.__name__) for module, ops in by_module.items()}


def facet_table(ops: list[type[Op]]) -> list[str]:
    lines = ["| op | result | " + " | ".join(FACETS) + " |", "|---|---|" + "---|" * len(FACETS)]
    for op in ops:
        marks = " | ".join("yes" if has(op, method) else "" for method in FACETS.values())
        lines.append(f"| `{op.__name__}` | {summary(op)} | {marks} |")
    return lines


def has(op: type[Op], facet: str) -> bool:
    """The op or its family has this facet."""
    return getattr(op, facet) is not getattr(Op, facet)


def summary(documented: object) -> str:
    """The first paragraph of a docstring as one line of a table."""
    text = (documented.__doc__ or "").strip().split("\n\n")[0]
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    main()
