"""``cgraph plan FILE``: every strategy's bytes for a file, or one plan as a picture or as JSON."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from cgraph.errors import FormatError, bytes_text
from cgraph.memory.auto import auto
from cgraph.memory.bounds import block_lower_bound, lower_bound
from cgraph.memory.check import check_plan
from cgraph.memory.files import read_problem, write_plan
from cgraph.memory.problem import Plan, Problem, Strategy
from cgraph.memory.strategies import STRATEGIES
from cgraph.view.blocks import plan_svg

READERS: dict[str, Callable[[Path], Problem]] = {".csv": read_problem}  # by file ending
CHOICES: dict[str, Strategy] = {"auto": auto, **STRATEGIES}
QUICK = 1.0  # seconds
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "plan",
        help="place the operands of a file in one arena",
        description="Place the operands of a file in one arena by every strategy, and compare with the lower bound.",
    )
    parser.add_argument("file", type=Path, help="usage records or MiniMalloc's format (.csv)")
    parser.add_argument("--strategy", choices=CHOICES, metavar="NAME", help=f"only this one of {', '.join(CHOICES)}")
    parser.add_argument("--budget", type=byte_count, metavar="BYTES", help="exit status 1 if no plan is this small")
    parser.add_argument("--svg", type=Path, metavar="OUT", help="draw the smallest plan")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the smallest plan")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the table, write what was asked for, and say whether the budget is met."""
    problem = _read(args.file)
    names = [args.strategy] if args.strategy else list(CHOICES)
    plans = {name: _timed(CHOICES[name], problem) for name in names}
    _print_table(problem, plans)
    best = min((plan for plan, _ in plans.values()), key=lambda plan: plan.nbytes)
    if args.svg:
        args.svg.write_text(plan_svg(problem, best), encoding="utf-8")
    if args.json:
        write_plan(args.json, problem, best)
    return 0 if args.budget is None else _compare_budget(best, args.budget, lower_bound(problem))


def byte_count(text: str) -> int:
    """A number of bytes, as ``4096`` or ``4KiB``."""
    unit = next((unit for unit in UNITS if text.endswith(unit)), "")
    number = text.removesuffix(unit).strip()
    if not (number.isascii() and number.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes, such as 4096 or 4KiB")
    return int(number) * UNITS.get(unit, 1)


def _read(file: Path) -> Problem:
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        raise FormatError(f"{file}: cannot plan a {file.suffix or 'nameless'} file, only {', '.join(READERS)}")
    return reader(file)


def _timed(strategy: Strategy, problem: Problem) -> tuple[Plan, float]:
    """A checked plan, and the seconds it took to make: the second time if the first was quick, to be warm."""
    plan, seconds = _once(strategy, problem)
    if seconds < QUICK:
        plan, seconds = _once(strategy, problem)
    check_plan(problem, plan)
    return plan, seconds


def _once(strategy: Strategy, problem: Problem) -> tuple[Plan, float]:
    start = perf_counter()
    plan = strategy(problem)
    return plan, perf_counter() - start


def _print_table(problem: Problem, plans: dict[str, tuple[Plan, float]]) -> None:
    bound = lower_bound(problem)
    print(f"{len(problem.operands)} operands")
    print(f"{'strategy':<26}{'bytes':>20}{'ratio':>9}{'ms':>10}")
    for name, nbytes in (("lower bound", bound), ("lower bound in blocks", block_lower_bound(problem))):
        print(f"{name:<26}{nbytes:>20}{_ratio(nbytes, bound):>9}")
    for name, (plan, seconds) in plans.items():
        made_by = "" if plan.strategy == name else f"  by {plan.strategy}"
        print(f"{name:<26}{plan.nbytes:>20}{_ratio(plan.nbytes, bound):>9}{seconds * 1e3:>10.2f}{made_by}")


def _ratio(nbytes: int, bound: int) -> str:
    return f"{nbytes / bound:.4f}" if bound else "-"


def _compare_budget(plan: Plan, budget: int, bound: int) -> int:
    """Status 0 if the plan fits in the budget; else say what is missing."""
    if plan.nbytes <= budget:
        return 0
    print(
        f"{plan.strategy} needs {bytes_text(plan.nbytes)}, the budget is {bytes_text(budget)}: "
        f"{plan.nbytes - budget} bytes are missing; no plan needs less than {bytes_text(bound)} ({bound} bytes)",
        file=sys.stderr,
    )
    return 1
