"""Mutation testing: faults are put into a copy of the tree one by one, and the tests that run the faulty line are
run.

    python -m benchmarks.mutants kernels/store kernels/cache [--kind small] [--count 15] [--seed 0] [--tests PATH ...]
    python -m benchmarks.mutants --hand [MODULE ...]
    python -m benchmarks.mutants --functions MODULE ... [--count 40] [--seed 0]
    python -m benchmarks.mutants --summary --record FILE

A module is a file or a folder below ``cgraph``, or of ``nn``. The seed draws which places get a fault: small ones
(`faults.py`), or with ``--kind meaning`` the mistakes of `meaning.py`, every sort of them equally often; ``--hand``
takes those of ``hand_faults/``, and ``--functions`` prints functions to write such faults in. The tests run once
without a fault, to see which of them runs which line and how long it takes (`reach.py`). Every fault then gets a
process of its own, forked from this one (`mutant_runs.py`): it runs the tests that run the faulty line, the fastest
first, about 20 seconds of them, and stops at the first that fails. A fault is noticed when one fails, or when they do
not end in several times the seconds that they need without it. Printed are the faults that were not noticed, as diffs,
and the score; ``--record`` keeps the verdicts. `docs/mutants.md` explains how to read it.

Not covered: a fault that changes nothing but speed or that no input can show counts against the score.
"""

import argparse
import difflib
import pickle
import subprocess
import sys
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.draw_faults import MAKERS, Drawn, draw_functions, drawn, hand_faults
from benchmarks.mutant_record import MISSED, Verdict, append_verdict, read_record, table_of
from benchmarks.mutant_runs import chosen, copied_tree, ended, is_emitter, reach
from benchmarks.mutant_tests import ROOT, files_of, tests_of
from benchmarks.reach import Reached

HAND = "hand"
SLOW_IMPORTS = ("hypothesis", "llvmlite.binding", "numba", "scipy.optimize", "onnx")


def main() -> None:
    options = arguments()
    if options.summary:
        print(table_of(read_record(options.record)))
        return
    if options.functions:
        files = {file: (ROOT / file).read_text() for file in named_files(options)}
        print(*(f"{file}:{line}" for file, line in draw_functions(files, options.count, options.seed)), sep="\n")
        return
    faults = selected(options)
    identities = {x.identity for x in faults}
    earlier = [x for x in read_record(options.record) if x.fault in identities]
    todo = [x for x in faults if x.identity not in {x.fault for x in earlier}]
    for name in SLOW_IMPORTS if todo else ():
        import_module(name)
    print(table_of(earlier + run_all(todo, options)))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", help="files or folders below cgraph, such as kernels/store; or nn")
    parser.add_argument("--hand", action="store_true", help="the faults that are listed by hand, of all parts")
    parser.add_argument("--functions", action="store_true", help="print functions of all parts equally, run nothing")
    parser.add_argument("--kind", choices=MAKERS, default="small", help="small faults, or faults of meaning")
    parser.add_argument("--count", type=int, default=15, help="faults")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", nargs="+", help="instead of those of the table")
    parser.add_argument("--record", type=Path, help="keeps the verdicts; faults of this file are not run again")
    parser.add_argument("--summary", action="store_true", help="print the table of a record, run nothing")
    parser.add_argument(
        "--reached", type=Path, help="file that keeps which test runs which line, while nothing changes"
    )
    options = parser.parse_args()
    if options.summary and options.record is None:
        parser.error("--summary prints the table of a record. Pass --record FILE")
    if not (options.summary or options.hand or options.modules):
        parser.error("there is nothing to do. Name modules, or pass --hand")
    return options


def named_files(options: argparse.Namespace) -> list[str]:
    """Return the files of the modules that the options name."""
    return [file for module in options.modules for file in files_of(module)]


def selected(options: argparse.Namespace) -> list[Drawn]:
    """Return the faults that the options ask for."""
    files = named_files(options)
    if not options.hand:
        return drawn({file: (ROOT / file).read_text() for file in files}, options.count, options.seed, options.kind)
    faults, stale = hand_faults()
    for description in stale:
        print(f"not there any more: {description}", file=sys.stderr)
    return [x for x in faults if not files or x.file in files]


def run_all(faults: list[Drawn], options: argparse.Namespace) -> list[Verdict]:
    """Run the tests under each fault, group by group of faults that have the same tests."""
    groups: dict[Any, list[Drawn]] = defaultdict(list)
    for each in faults:
        groups[tuple(options.tests or tests_of(each.file)), is_emitter(each.file)].append(each)
    verdicts = []
    commit = subprocess.check_output(["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, text=True).strip()
    with copied_tree() as tree:
        for (tests, _), some in groups.items():
            reached = reached_by(options.reached, tree, sorted({x.file for x in some}), list(tests))
            for each in some:
                verdict = verdict_of(tree, each, reached, options, commit)
                append_verdict(options.record, verdict)
                verdicts.append(verdict)
    return verdicts


def verdict_of(tree: Path, each: Drawn, reached: Reached, options: argparse.Namespace, commit: str) -> Verdict:
    """Run the tests under a fault and print how they ended."""
    tests = chosen(reached, each)
    ending = ended(tree, each, tests, sum(reached[test][0] for test in tests))
    kind, seed = (HAND, 0) if options.hand else (options.kind, options.seed)
    place = f"{each.file}:{each.fault.line}"
    print(f"{place} {each.fault.name} {ending.verdict} {ending.by}", flush=True)
    if ending.verdict == MISSED:
        print(diff(each), flush=True)
    seconds = round(ending.seconds, 1)
    return Verdict(each.identity, commit, kind, seed, place, each.fault.name, ending.verdict, ending.by, seconds)


def reached_by(file: Path | None, tree: Path, files: list[str], tests: list[str]) -> Reached:
    """Return what an earlier run kept in a file, or else what is reached now, kept for the next."""
    key = (tuple(files), tuple(tests))
    kept: dict[Any, Reached] = pickle.loads(file.read_bytes()) if file is not None and file.exists() else {}
    if key not in kept:
        kept[key] = reach(tree, files, tests)
        if file is not None:
            file.write_bytes(pickle.dumps(kept))
    return kept[key]


def diff(each: Drawn) -> str:
    lines = difflib.unified_diff(each.source.splitlines(), each.text().splitlines(), lineterm="", n=1)
    return "\n".join(list(lines)[2:]) + "\n"


if __name__ == "__main__":
    main()
