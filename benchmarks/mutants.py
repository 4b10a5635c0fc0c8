"""Do the tests notice small faults? Each is put into a copy of the tree, alone, and the tests of its module are run.

    python -m benchmarks.mutants kernels/store [--count 15] [--seed 0] [--tests tests/kernels/test_store.py ...]

Faults are what people slip on: a comparison that takes the other side of equality, a constant that is one off, a
condition that is dropped or always holds, `and` for `or`, a sign, a statement or a call left out, another result. Which
places get one is drawn with a fixed seed. A fault is noticed when a test fails, or when the tests do not end in the
time that they need without a fault, several times over. Printed are the faults that were not noticed, as diffs, and the
score. `docs/mutants.md` keeps the scores.

Not covered: faults of several lines, of names, of text and docstrings; a fault that changes nothing but speed or that
no input can show counts against the score.
"""

import argparse
import ast
import copy
import difflib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from cgraph.kernels.cache import cache_folder

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 4  # times the time of the tests without a fault
LEAST_SECONDS = 60
KERNELS = "tests/kernels"
# the tests that matter for a module: those of its longest beginning that stands here
TESTS: dict[str, tuple[str, ...]] = {
    "": ("tests/function", "tests/ops/test_cases.py"),
    "autodiff": ("tests/autodiff",),
    "engine/cpu": ("tests/engine", "tests/function"),
    "formats": ("tests/formats",),
    "kernels": (KERNELS,),
    "kernels/cache": (f"{KERNELS}/test_store.py",),
    "kernels/calls/bands": (f"{KERNELS}/test_conv.py", f"{KERNELS}/test_laned_copy.py", f"{KERNELS}/test_pool.py"),
    "kernels/calls/laned": (f"{KERNELS}/test_laned_copy.py", f"{KERNELS}/test_conv.py"),
    "kernels/calls/laned_copy": (f"{KERNELS}/test_laned_copy.py",),
    "kernels/calls/boxes": ("tests/ops/test_cases.py",),
    "kernels/calls/conv": (f"{KERNELS}/test_conv.py", f"{KERNELS}/test_tiles.py"),
    "kernels/calls/conv_transpose": (f"{KERNELS}/test_conv_transpose.py",),
    "kernels/calls/depthwise": (f"{KERNELS}/test_depthwise.py",),
    "kernels/calls/filter_grad": (f"{KERNELS}/test_filter_grad.py",),
    "kernels/calls/gemm": (f"{KERNELS}/test_matmul.py",),
    "kernels/calls/index": (f"{KERNELS}/test_index.py",),
    "kernels/calls/layout": (f"{KERNELS}/test_pointwise.py", f"{KERNELS}/test_reduce.py", f"{KERNELS}/test_move.py"),
    "kernels/calls/matmul": (f"{KERNELS}/test_matmul.py",),
    "kernels/calls/matrices": (f"{KERNELS}/test_matmul.py",),
    "kernels/calls/move": (f"{KERNELS}/test_move.py",),
    "kernels/calls/normalise": (f"{KERNELS}/test_normalise.py",),
    "kernels/calls/pointwise": (f"{KERNELS}/test_pointwise.py",),
    "kernels/calls/pool": (f"{KERNELS}/test_pool.py",),
    "kernels/calls/random": (f"{KERNELS}/test_random.py",),
    "kernels/calls/reduce": (f"{KERNELS}/test_reduce.py",),
    "kernels/calls/regions": (f"{KERNELS}/test_regions.py",),
    "kernels/calls/resize": (f"{KERNELS}/test_resize.py",),
    "kernels/calls/scan": (f"{KERNELS}/test_scan.py",),
    "kernels/calls/softmax": (f"{KERNELS}/test_softmax.py",),
    "kernels/calls/sort": (f"{KERNELS}/test_sort.py",),
    "kernels/calls/stencil": (f"{KERNELS}/test_stencil.py",),
    "kernels/calls/winograd": (f"{KERNELS}/test_winograd.py",),
    "kernels/llvm/accumulate": (f"{KERNELS}/test_reduce.py", f"{KERNELS}/test_softmax.py"),
    "kernels/llvm/laned_copy": (f"{KERNELS}/test_laned_copy.py",),
    "kernels/llvm/conv": (f"{KERNELS}/test_conv.py",),
    "kernels/llvm/depthwise": (f"{KERNELS}/test_depthwise.py",),
    "kernels/llvm/epilogue": (f"{KERNELS}/test_conv.py", f"{KERNELS}/test_matmul.py"),
    "kernels/llvm/filter_grad": (f"{KERNELS}/test_filter_grad.py",),
    "kernels/llvm/gem": (f"{KERNELS}/test_matmul.py",),
    "kernels/llvm/index": (f"{KERNELS}/test_index.py",),
    "kernels/llvm/interpret": ("tests/engine",),
    "kernels/llvm/move": (f"{KERNELS}/test_move.py",),
    "kernels/llvm/normalise": (f"{KERNELS}/test_normalise.py",),
    "kernels/llvm/pointwise": (f"{KERNELS}/test_pointwise.py",),
    "kernels/llvm/pool": (f"{KERNELS}/test_pool.py",),
    "kernels/llvm/random": (f"{KERNELS}/test_random.py",),
    "kernels/llvm/reduce": (f"{KERNELS}/test_reduce.py",),
    "kernels/llvm/regions": (f"{KERNELS}/test_regions.py",),
    "kernels/llvm/resize": (f"{KERNELS}/test_resize.py",),
    "kernels/llvm/scan": (f"{KERNELS}/test_scan.py",),
    "kernels/llvm/softmax": (f"{KERNELS}/test_softmax.py",),
    "kernels/llvm/sort": (f"{KERNELS}/test_sort.py",),
    "kernels/llvm/stencil": (f"{KERNELS}/test_stencil.py",),
    "kernels/llvm/v": (f"{KERNELS}/test_vmath.py", f"{KERNELS}/test_polynomials.py"),
    "kernels/llvm/walk": (f"{KERNELS}/test_pointwise.py", f"{KERNELS}/test_move.py"),
    "kernels/llvm/winograd": (f"{KERNELS}/test_winograd.py",),
    "kernels/objects": (f"{KERNELS}/test_store.py",),
    "kernels/signature": (f"{KERNELS}/test_signatures.py", f"{KERNELS}/test_move.py", f"{KERNELS}/test_reduce.py"),
    "kernels/store": (f"{KERNELS}/test_store.py", f"{KERNELS}/test_gpu.py"),
    "memory": ("tests/memory", "tests/function"),
    "passes": ("tests/passes", "tests/function"),
    "schedule": ("tests/schedule", "tests/function/test_orders.py"),
    "view": ("tests/view",),
}
COMPARISONS: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
SIGNS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


class Fault(NamedTuple):
    """Another text in the place of a node's."""

    line: int
    start: int
    end: int
    text: str


def main() -> None:
    options = arguments()
    path = ROOT / "cgraph" / f"{options.module.removeprefix('cgraph/').removesuffix('.py')}.py"
    name = path.relative_to(ROOT / "cgraph").with_suffix("").as_posix()
    tests = options.tests or tests_of(name)
    source = path.read_text()
    faults = drawn(faults_of(source), options.count, options.seed)
    with copied_tree() as tree:
        seconds = seconds_of(tree, tests)
        unnoticed = []
        for fault in faults:
            changed = source[: fault.start] + fault.text + source[fault.end :]
            noticed = is_noticed(tree, path, changed, tests, max(LEAST_SECONDS, PATIENCE * seconds))
            print(f"{name}:{fault.line} {'noticed' if noticed else 'NOT NOTICED'}", flush=True)
            if not noticed:
                unnoticed.append(diff(path, source, changed))
    print(*unnoticed, sep="\n")
    print(f"{name}: {len(faults) - len(unnoticed)} of {len(faults)} noticed, seed {options.seed}, by {' '.join(tests)}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("module", help="a file below cgraph, such as kernels/store")
    parser.add_argument("--count", type=int, default=15, help="faults")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", nargs="+", help="instead of those of the table")
    return parser.parse_args()


def tests_of(name: str) -> tuple[str, ...]:
    """The tests of a module."""
    return TESTS[max((start for start in TESTS if name.startswith(start)), key=len)]


def drawn(faults: list[Fault], count: int, seed: int) -> list[Fault]:
    """Some of the faults, no two in one place, in the order of the file."""
    by_place: dict[tuple[int, int], list[Fault]] = {}
    for fault in faults:
        by_place.setdefault((fault.start, fault.end), []).append(fault)
    rng = random.Random(seed)
    places = rng.sample(sorted(by_place), min(count, len(by_place)))
    return sorted(rng.choice(by_place[place]) for place in places)


def faults_of(source: str) -> list[Fault]:
    """All small faults of a module."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def place(line: int, nbytes: int) -> int:
        start = starts[line - 1]
        return start + len(source[start : start + nbytes].encode()[:nbytes].decode())  # columns are bytes of UTF-8

    found = []
    for node in walked(ast.parse(source)):
        for old, new in changes(node):
            text = ast.unparse(ast.fix_missing_locations(new))
            start, end = place(old.lineno, old.col_offset), place(old.end_lineno, old.end_col_offset)
            found.append(Fault(old.lineno, start, end, f"({text})" if isinstance(new, ast.expr) else text))
    return found


def walked(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it, without annotations and messages: places inside of formatted text are not exact."""
    yield node
    if isinstance(node, ast.JoinedStr):
        return
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and name not in ("annotation", "returns"):
                yield from walked(child)


def changes(node: Any) -> Iterator[tuple[Any, ast.AST]]:
    """Every part of a node that may be faulty, and what stands there then."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            yield node, with_fields(node, ops=[COMPARISONS[type(op)]()])
        case ast.Constant(value=bool()):
            yield node, ast.Constant(not node.value)
        case ast.Constant(value=int()):
            yield node, ast.Constant(node.value + 1)
        case ast.BoolOp(op=op, values=values):
            yield node, with_fields(node, op=ast.And() if isinstance(op, ast.Or) else ast.Or())
            yield from ((node, with_fields(node, values=values[:i] + values[i + 1 :])) for i in range(len(values)))
        case ast.UnaryOp(op=ast.Not()):
            yield node, node.operand
        case ast.BinOp(op=op) if type(op) in SIGNS:
            yield node, with_fields(node, op=SIGNS[type(op)]())
        case ast.If() | ast.IfExp():
            yield from ((node.test, ast.Constant(value)) for value in (True, False))
        case ast.While():
            yield node.test, ast.Constant(False)
        case ast.comprehension(ifs=[test, *_]):
            yield test, ast.Constant(True)
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.AugAssign():
            yield node, ast.Pass()
        case ast.Return(value=ast.expr()) if not isinstance(node.value, ast.Constant):
            yield node, ast.Return(ast.Constant(None))


def with_fields(node: ast.AST, **fields: object) -> ast.AST:
    """The node with other values for some fields."""
    made = copy.copy(node)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


@contextmanager
def copied_tree() -> Iterator[Path]:
    """A copy of what is in the repository, with a cache of kernels of its own; ``../shared`` is the same."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        for name in listed.splitlines():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_file():
                shutil.copyfile(ROOT / name, tree / name)
        if (ROOT.parent / "shared").exists():
            (tree.parent / "shared").symlink_to(ROOT.parent / "shared")
        yield tree


def seconds_of(tree: Path, tests: tuple[str, ...]) -> float:
    """What the tests take when they pass, kernels in the cache. SystemExit when they do not pass."""
    known, cache = cache_folder(), tree.parent / "cache"
    if known is not None:
        shutil.copytree(known, cache / "cgraph" / "kernels")
    cache.mkdir(mode=0o700, exist_ok=True)
    for _ in range(2):  # the first run compiles what the user's cache lacks
        start = time.monotonic()
        run = pytest(tree, tests, None)
        if run != 0:
            sys.exit("the tests fail without a fault")
    cache.rename(tree.parent / "kept")
    return time.monotonic() - start


def is_noticed(tree: Path, path: Path, changed: str, tests: tuple[str, ...], limit: float) -> bool:
    """Whether a test fails, or the tests do not end; every fault begins with the cache of a run without one."""
    place = tree / path.relative_to(ROOT)
    kept = place.read_text()
    shutil.rmtree(tree.parent / "cache", ignore_errors=True)
    shutil.copytree(tree.parent / "kept", tree.parent / "cache")
    place.write_text(changed)
    try:
        return pytest(tree, tests, limit) != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        place.write_text(kept)


def pytest(tree: Path, tests: tuple[str, ...], limit: float | None) -> int:
    """The exit status of the tests; TimeoutExpired after `limit` seconds."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", *tests]
    environment = os.environ | {"PYTHONPATH": str(tree), "XDG_CACHE_HOME": str(tree.parent / "cache")}
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, timeout=limit).returncode


def diff(path: Path, before: str, after: str) -> str:
    name = path.relative_to(ROOT).as_posix()
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), name, name, lineterm="", n=1)
    return "\n".join(list(lines)[2:]) + "\n"


if __name__ == "__main__":
    main()
