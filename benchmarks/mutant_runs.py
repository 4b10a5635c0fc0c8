"""Running tests in a copy of the tree with a fault in it, each in a process of its own.

The copies are forked from this process, which imports what is slow to import and nothing of the tree.
"""

import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import accumulate, count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchmarks.draw_faults import Drawn
from benchmarks.mutant_record import DIED, MISSED, NOTICED
from benchmarks.mutant_tests import ROOT
from benchmarks.reach import Reach, Reached

BUDGET = 20  # seconds of tests for one fault
PATIENCE = 4  # times the processor time of the tests without a fault, and of a start
START = 15  # seconds of a start
START_ANEW = 60  # where kernels are made anew, since they know what made them
WAITING = 20  # times the same, by the clock: others use the machine, too
PASSED = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
FORK = multiprocessing.get_context("fork")
TURNS = count(1)
APART = 10  # seconds between the times of a file with one fault and with the next


@contextmanager
def copied_tree() -> Iterator[Path]:
    """Yield a copy of what is in the repository, with a cache of the user's kernels; ``../shared`` is the same."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        for name in listed.splitlines():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_file():
                shutil.copyfile(ROOT / name, tree / name)
        if (ROOT.parent / "shared").exists():
            (tree.parent / "shared").symlink_to(ROOT.parent / "shared")
        for is_emitter in (False, True):
            cache_of(tree, is_emitter).mkdir(mode=0o700, parents=True)
        for kernel in users_cache().glob("*.o"):
            with suppress(FileNotFoundError):  # another process has removed it meanwhile
                shutil.copyfile(kernel, cache_of(tree, False) / kernel.name)
        yield tree


def users_cache() -> Path:
    """Return the folder of the user's kernels.

    A process of its own is asked: faulty processes would not import anew what this one imports.
    """
    ask = "from cgraph.kernels.cache import cache_folder; print(cache_folder() or '/nowhere')"
    return Path(subprocess.check_output([sys.executable, "-c", ask], cwd=ROOT, text=True).strip())


def cache_of(tree: Path, is_emitter: bool) -> Path:
    """Return the cache of kernels of a tree; another one, empty at first, where it matters which lines write them."""
    return tree.parent / ("cold" if is_emitter else "warm") / "cgraph" / "kernels"


def is_emitter(file: str) -> bool:
    """Return True for files that run only when a kernel is compiled."""
    name = file.rpartition("/")[2]
    return file.startswith("cgraph/kernels/") and ("/llvm/" in file or "emit" in name or name == "gpu_tile.py")


def reach(tree: Path, files: list[str], tests: list[str]) -> Reached:
    """Return which lines of the files each test runs. Tests that fail without a fault are printed and left out."""

    def work() -> Reached:
        plugin = Reach(tree, files)
        run_tests(tests, plugin, stop=False)
        for test in plugin.failed:
            print(f"left out, since it fails without a fault: {test}", flush=True)
        return {test: entry for test, entry in plugin.reached.items() if test not in plugin.failed}

    return in_child(tree, work, is_cold=any(map(is_emitter, files))) or sys.exit("the tests do not run without a fault")


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


class Ending(NamedTuple):
    """How the tests ended under a fault: a verdict of `benchmarks.mutant_record`, and the failing test."""

    verdict: str
    by: str
    seconds: float  # of the processor


def ended(tree: Path, each: Drawn, tests: list[str], seconds: float) -> Ending:
    """Return how the tests ended under a fault; what it left in the cache of kernels is removed."""
    place, is_cold = tree / each.file, is_emitter(each.file)
    times, known = place.stat(), entries(tree, is_cold)
    place.write_text(each.text())
    later = times.st_mtime + APART * next(TURNS)  # byte code is known by the time and the size of its source
    os.utime(place, (times.st_atime, later))
    start = START_ANEW if each.file.startswith("cgraph/kernels/") else START
    before = processor_seconds()

    def work() -> tuple[int, list[str]]:
        plugin = Chosen(tests)
        return run_tests(list(dict.fromkeys(test.split("::")[0] for test in tests)), plugin), plugin.failed

    try:
        answer = in_child(tree, work, start + round(seconds), is_cold)
        verdict = DIED if answer is None else MISSED if answer[0] in PASSED else NOTICED
        return Ending(verdict, answer[1][0] if answer and answer[1] else "", processor_seconds() - before)
    finally:
        place.write_text(each.source)
        os.utime(place, (times.st_atime, times.st_mtime))
        for name, _ in entries(tree, is_cold) - known:
            (cache_of(tree, is_cold) / name).unlink(missing_ok=True)


def processor_seconds() -> float:
    """Return the processor time of the child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def entries(tree: Path, is_cold: bool) -> set[tuple[str, int]]:
    """Return what is in a cache of kernels: names, and which file it is that has the name."""
    return {(entry.name, entry.inode()) for entry in os.scandir(cache_of(tree, is_cold))}


def in_child(tree: Path, work: Callable[[], Any], expected: int | None = None, is_cold: bool = False) -> Any:
    """Return what `work` returns in a process of its own, in the tree; None when it dies.

    With a number of processor seconds it is killed when it takes far longer, and what it prints is not shown.
    """
    ours, theirs = FORK.Pipe(duplex=False)

    def begin() -> None:
        os.setsid()
        os.chdir(tree)
        os.environ |= {"PYTHONPATH": str(tree), "XDG_CACHE_HOME": str(cache_of(tree, is_cold).parents[1])}
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
    """Runs these tests alone, in this order, and notes which fail."""

    def __init__(self, tests: list[str]):
        self.tests = tests
        self.failed: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        by_name = {item.nodeid: item for item in items}
        items[:] = [by_name[test] for test in self.tests if test in by_name]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def run_tests(paths: list[str], plugin: object, stop: bool = True) -> int:
    """Return the exit status of pytest, which stops at the first failure unless `stop` is False."""
    options = ["-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist", *(["-x"] if stop else [])]
    return pytest.main([*options, *paths], plugins=[plugin])
