"""Do the tests notice faults? Each is put into a copy of the tree, alone, and the tests that run its line are run.

    python -m benchmarks.mutants kernels/store kernels/cache [--kind small] [--count 15] [--seed 0] [--tests PATH ...]

A module is a file or a folder below ``cgraph``, or of ``nn``. The seed draws which places get a fault: small ones
(`faults.py`), or with ``--kind meaning`` the mistakes of `meaning.py`, every sort of them equally often. The tests run
once without a fault, to see which of them runs which line and how long it takes (`reach.py`). Every fault then gets a
process of its own, forked from this one, which has imported what is slow to import and nothing of the tree: it runs the
tests that run the faulty line, the fastest first, about BUDGET seconds of them, and stops at the first that fails. A
fault is noticed when one fails, or when they do not end in several times the seconds that they need without it. Printed
are the faults that were not noticed, as diffs, and the score. `docs/mutants.md` explains how to read it.

Not covered: faults of several places, of text and docstrings; a fault that changes nothing but speed or that no input
can show counts against the score.
"""

import argparse
import difflib
import multiprocessing
import os
import pickle
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchmarks.faults import Fault, faults_of
from benchmarks.meaning import meaning_faults_of
from benchmarks.reach import Reach, Reached

ROOT = Path(__file__).resolve().parents[1]
BUDGET = 20  # seconds of tests for one fault
PATIENCE = 4  # times the processor time of the tests without a fault, and of a start
START = 15  # seconds of a start
START_ANEW = 60  # where kernels are made anew, since they know what made them
COMPILED = "cgraph/kernels/llvm"
UNNOTICED, DIED = "NOT NOTICED", "noticed: they died, or took too long"
WAITING = 20  # times the same, by the clock: others use the machine, too
PASSED = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
FORK = multiprocessing.get_context("fork")
SLOW_IMPORTS = ("hypothesis", "llvmlite.binding", "numba", "scipy.optimize", "onnx")
KERNELS = "tests/kernels"
MAKERS: dict[str, Callable[[str], list[Fault]]] = {"small": faults_of, "meaning": meaning_faults_of}
BY_ROWS, SIZES = "tests/function/test_by_rows.py", "tests/function/test_sizes.py"
FROM_DISK = ("tests/function/test_streamed_weights.py",)
RUNS = ("tests/function", "tests/memory/test_recompute.py", "tests/ops/test_index.py", "tests/ops/test_callback.py")
# the tests that matter for a file below cgraph, or in nn: those of its longest beginning that stands here
TESTS: dict[str, tuple[str, ...]] = {
    "": ("tests/function", "tests/ops/test_cases.py"),
    "array_api": ("tests/array_api",),
    "autodiff": ("tests/autodiff",),
    "budget": ("tests/memory", "tests/passes/test_stream_rows.py"),
    "cell": (*RUNS, "tests/saved"),
    "cli": ("tests/cli",),
    "dist": ("tests/dist",),
    "engine/cpu": ("tests/engine", *RUNS),
    "engine/cpu/reader": FROM_DISK,
    "engine/cpu/ring": FROM_DISK,
    "engine/cpu/streamed": FROM_DISK,
    "formats": ("tests/formats",),
    "function": RUNS,
    "ir": ("tests/ir", "tests/ops/test_numpy_semantics.py", "tests/function/test_errors.py"),
    "kernels": (KERNELS,),
    "kernels/cache": (f"{KERNELS}/test_store.py",),
    "kernels/llvm/interpret": ("tests/engine", "tests/function"),
    "kernels/objects": (f"{KERNELS}/test_store.py", "tests/saved"),
    "kernels/store": (f"{KERNELS}/test_store.py", f"{KERNELS}/test_gpu.py"),
    "memory": ("tests/memory", "tests/function/test_wiring.py", "tests/passes/test_stream_rows.py"),
    "memory/packing": ("tests/memory/test_packing.py",),
    "nn": ("tests/nn",),
    "nn/parallel": ("tests/dist",),
    "numpy": ("tests/numpy",),
    "ops": ("tests/ops", "tests/autodiff"),
    "ops/physical": ("tests/passes", "tests/ops/test_cases.py"),
    "ops/physical/stream": ("tests/passes/test_stream_rows.py",),
    "owned": ("tests/saved/test_folder.py", f"{KERNELS}/test_store.py"),
    "passes": ("tests/passes", "tests/ops/test_control.py"),
    "planning": ("tests/memory", "tests/function", "tests/passes/test_recompute.py"),
    "quantiser": ("tests/quantiser",),
    "rooms": ("tests/function/test_runs.py", "tests/function/test_transactions.py", SIZES),
    "row_runner": (BY_ROWS, SIZES),
    "rows": (BY_ROWS, "tests/memory/test_rows.py"),
    "runner": (*RUNS, "tests/saved"),
    "saved": ("tests/saved",),
    "schedule": ("tests/schedule", "tests/function/test_orders.py"),
    "sizes": (SIZES,),
    "view": ("tests/view",),
    "weight_file": FROM_DISK,
}


Place = tuple[str, int, int]  # a file, and where in its text a fault starts and ends


class Drawn(NamedTuple):
    """A fault, the file it is put into, and that file's text."""

    file: str
    fault: Fault
    source: str

    def text(self) -> str:
        return self.source[: self.fault.start] + self.fault.text + self.source[self.fault.end :]


def main() -> None:
    options = arguments()
    files = [file for module in options.modules for file in files_of(module)]
    tests = options.tests or sorted({test for file in files for test in tests_of(file)})
    faults = drawn({file: (ROOT / file).read_text() for file in files}, options.count, options.seed, options.kind)
    for name in SLOW_IMPORTS:
        import_module(name)
    with copied_tree(kernels=not any(file.startswith(COMPILED) for file in files)) as tree:
        reached = known_or(options.reached, lambda: reach(tree, files, tests))
        unnoticed = []
        for each in faults:
            tests_of_line = chosen(reached, each)
            seconds = sum(reached[test][0] for test in tests_of_line)
            end = ended(tree, each, tests_of_line, seconds)
            print(f"{each.file}:{each.fault.line} {each.fault.name} {end}", flush=True)
            if end == UNNOTICED:
                unnoticed.append(each)
                print(diff(each), flush=True)
    score = f"{len(faults) - len(unnoticed)} of {len(faults)} noticed"
    print(f"{' '.join(options.modules)}: {score}, {options.kind}, seed {options.seed}, by {' '.join(tests)}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="+", help="files or folders below cgraph, such as kernels/store; or nn")
    parser.add_argument("--kind", choices=MAKERS, default="small", help="small faults, or faults of meaning")
    parser.add_argument("--count", type=int, default=15, help="faults")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", nargs="+", help="instead of those of the table")
    parser.add_argument(
        "--reached", type=Path, help="file that keeps which test runs which line, while nothing changes"
    )
    return parser.parse_args()


def known_or(file: Path | None, find: Callable[[], Reached]) -> Reached:
    """What an earlier run found and kept, or else what is found now, kept for the next."""
    if file is not None and file.exists():
        return pickle.loads(file.read_bytes())
    found = find()
    if file is not None:
        file.write_bytes(pickle.dumps(found))
    return found


def files_of(module: str) -> list[str]:
    """The files of a module, relative to the root. SystemExit when there are none."""
    place = ROOT / module if module.split("/")[0] == "nn" else ROOT / "cgraph" / module
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    if not all(file.is_file() for file in files):
        sys.exit(f"{module} is neither a file nor a folder below cgraph")
    return [file.relative_to(ROOT).as_posix() for file in files]


def tests_of(file: str) -> tuple[str, ...]:
    """The tests of a file."""
    module = file.removeprefix("cgraph/")
    return TESTS[max((start for start in TESTS if module.startswith(start)), key=len)]


def drawn(sources: dict[str, str], count: int, seed: int, kind: str = "small") -> list[Drawn]:
    """Some of the faults, no two in one place, in the order of the files."""
    by_place: dict[Place, list[Fault]] = defaultdict(list)
    for file, source in sources.items():
        for fault in MAKERS[kind](source):
            by_place[file, fault.start, fault.end].append(fault)
    rng = random.Random(seed)
    if kind == "meaning":
        faults = evenly(by_place, count, rng)
    else:
        places = rng.sample(sorted(by_place), min(count, len(by_place)))
        faults = [(place, rng.choice(by_place[place])) for place in places]
    return sorted(Drawn(place[0], fault, sources[place[0]]) for place, fault in faults)


def evenly(by_place: dict[Place, list[Fault]], count: int, rng: random.Random) -> list[tuple[Place, Fault]]:
    """As many faults of every name, while there are any; no two in one place."""
    by_name: dict[str, list[tuple[Place, Fault]]] = defaultdict(list)
    for place in sorted(by_place):
        for fault in by_place[place]:
            by_name[fault.name].append((place, fault))
    for some in by_name.values():
        rng.shuffle(some)
    selected: dict[Place, Fault] = {}
    while len(selected) < count and any(by_name.values()):
        for some in by_name.values():
            while some and some[-1][0] in selected:
                some.pop()
            if some and len(selected) < count:
                selected.update([some.pop()])
    return list(selected.items())


@contextmanager
def copied_tree(kernels: bool) -> Iterator[Path]:
    """A copy of what is in the repository, with a cache of kernels of its own; ``../shared`` is the same.

    The cache holds the user's `kernels`, or nothing, where it matters which lines make them.
    """
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        for name in listed.splitlines():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_file():
                shutil.copyfile(ROOT / name, tree / name)
        if (ROOT.parent / "shared").exists():
            (tree.parent / "shared").symlink_to(ROOT.parent / "shared")
        cache_of(tree).mkdir(mode=0o700, parents=True)
        for kernel in users_cache().glob("*.o") if kernels else ():
            with suppress(FileNotFoundError):  # another process has removed it meanwhile
                shutil.copyfile(kernel, cache_of(tree) / kernel.name)
        yield tree


def users_cache() -> Path:
    """Asked in a process of its own: what this one imports, the faulty ones would not import anew."""
    ask = "from cgraph.kernels.cache import cache_folder; print(cache_folder() or '/nowhere')"
    return Path(subprocess.check_output([sys.executable, "-c", ask], cwd=ROOT, text=True).strip())


def cache_of(tree: Path) -> Path:
    return tree.parent / "cache" / "cgraph" / "kernels"


def reach(tree: Path, files: list[str], tests: list[str]) -> Reached:
    """Which lines of the files each test runs. SystemExit when the tests fail without a fault."""

    def work() -> Reached | None:
        plugin = Reach(tree, files)
        return None if run_tests(tests, plugin) else plugin.reached

    return in_child(tree, work) or sys.exit("the tests fail without a fault")


def chosen(reached: Reached, each: Drawn) -> list[str]:
    """The tests that run the line of a fault, about BUDGET seconds of them.

    The fastest come first, and one test function's cases take no more than those of others that are waiting.
    """
    cases: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for test in running(reached, each):
        cases[test.split("[")[0]].append((reached[test][0], test))
    order = []
    for some in map(sorted, cases.values()):
        together = accumulate(seconds for seconds, _ in some)
        order += [(so_far, *case) for so_far, case in zip(together, some)]
    order.sort()
    spent = accumulate((seconds for _, seconds, _ in order), initial=0.0)
    return [test for (_, _, test), before in zip(order, spent) if before < BUDGET]


def running(reached: Reached, each: Drawn) -> list[str]:
    """The tests that run the line, or the last before it in its function that any test runs; or its file; or folder."""
    for line in range(each.fault.line, each.fault.function, -1):
        if tests := [test for test, (_, places) in reached.items() if (each.file, line) in places]:
            return tests
    for near in (each.file, str(Path(each.file).parent)):
        if tests := [t for t, (_, places) in reached.items() if any(file.startswith(near) for file, _ in places)]:
            return tests
    return list(reached)


def ended(tree: Path, each: Drawn, tests: list[str], seconds: float) -> str:
    """How the tests ended under a fault; what it left in the cache of kernels is removed."""
    place = tree / each.file
    times, known = place.stat(), entries(tree)
    place.write_text(each.text())
    os.utime(place, (times.st_atime, times.st_mtime + 10))  # byte code is known by the time of its source
    start = START_ANEW if each.file.startswith(COMPILED) else START
    try:
        paths = list(dict.fromkeys(test.split("::")[0] for test in tests))
        status = in_child(tree, lambda: run_tests(paths, Chosen(tests)), start + round(seconds))
        return UNNOTICED if status in PASSED else DIED if status is None else "noticed"
    finally:
        place.write_text(each.source)
        os.utime(place, (times.st_atime, times.st_mtime))
        for name, _ in entries(tree) - known:
            (cache_of(tree) / name).unlink(missing_ok=True)


def entries(tree: Path) -> set[tuple[str, int]]:
    """What is in the cache of kernels: names, and which file it is that has the name."""
    return {(entry.name, entry.inode()) for entry in os.scandir(cache_of(tree))}


def in_child(tree: Path, work: Callable[[], Any], expected: int | None = None) -> Any:
    """What `work` returns in a process of its own, in the tree; None when it dies.

    With a number of processor seconds it is killed when it takes far longer, and what it prints is not shown.
    """
    ours, theirs = FORK.Pipe(duplex=False)

    def begin() -> None:
        os.setsid()
        os.chdir(tree)
        os.environ |= {"PYTHONPATH": str(tree), "XDG_CACHE_HOME": str(tree.parent / "cache")}
        sys.path[:] = [str(tree), *(place for place in sys.path if Path(place).resolve() != ROOT)]
        if expected is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE * expected, PATIENCE * expected))
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        theirs.send(work())

    child = FORK.Process(target=begin)
    child.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(None if expected is None else WAITING * expected) else None
    except EOFError:
        return None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # with all that the tests have started
        child.join()


class Chosen:
    """Runs these tests alone, in this order."""

    def __init__(self, tests: list[str]):
        self.tests = tests

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        by_name = {item.nodeid: item for item in items}
        items[:] = [by_name[test] for test in self.tests if test in by_name]


def run_tests(paths: list[str], plugin: object) -> int:
    """The exit status of pytest."""
    options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist"]
    return pytest.main([*options, *paths], plugins=[plugin])


def diff(each: Drawn) -> str:
    lines = difflib.unified_diff(each.source.splitlines(), each.text().splitlines(), lineterm="", n=1)
    return "\n".join(list(lines)[2:]) + "\n"


if __name__ == "__main__":
    main()
