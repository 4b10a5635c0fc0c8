"""``cgraph plan FILE``: compare the bytes of all strategies for a model or planning file; draw or save one plan."""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from cgraph.budget.refusal import budget_text
from cgraph.cli.arguments import byte_count
from cgraph.cli.bench import random_inputs
from cgraph.cli.curve import curve_lines, curve_of, regions_of
from cgraph.cli.model import REFERENCE, model_from, python_object
from cgraph.cli.model_arguments import add_model, constants_of
from cgraph.cli.paper import paper_lines
from cgraph.cli.precisions import precision_lines
from cgraph.cli.stream import add_stream, stream_options
from cgraph.engine.cpu.ring import resident_constants
from cgraph.errors import BudgetError, FormatError, bytes_text
from cgraph.memory.bounds import block_lower_bound, lower_bound
from cgraph.memory.check import check_plan
from cgraph.memory.files import plan_text, read_problem, write_plan
from cgraph.memory.layout import Layout, owner_of
from cgraph.memory.problem import Plan, Problem, Strategy
from cgraph.memory.strategies import OFFSET_STRATEGIES, STRATEGIES
from cgraph.memory.usage import Usage
from cgraph.ops.leaf import VarOp
from cgraph.planning.strategy import entry_points_by_name, exact_with_progress, strategy_named
from cgraph.system.progress import Bars, with_progress
from cgraph.terminal import complain, say, write
from cgraph.view.blocks import plan_svg
from cgraph.view.curve import curve_svg
from cgraph.view.figures import Figures
from cgraph.view.report import report, timed_report
from cgraph.view.report_text import weights_lines

READERS: dict[str, Callable[[Path], Problem]] = {".csv": read_problem}  # by file ending
CHOICES = ("auto", *STRATEGIES)
WITHIN = (*(name for name in OFFSET_STRATEGIES if name != "exact"), "exact")
"""Strategies tried within a budget; the exact search, which comes last, finds every plan that others find."""
QUICK = 4.0  # seconds; includes the time in which a strategy loads compiled code
MOST_PIECES = 20  # maximum number of weights in a table


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "plan",
        help="say how many bytes a model needs, by every strategy",
        description="Place the values of a model, or the operands of a planning file (usage records or MiniMalloc's "
        "format, .csv), in one arena by every strategy; compare with the lower bound; list what is alive at the peak.",
    )
    add_model(parser)
    parser.add_argument(
        "--strategy",
        type=strategy_name,
        metavar="NAME",
        help=f"only this one of {', '.join(CHOICES)}, of an installed package, or a Python function module:function",
    )
    parser.add_argument(
        "--budget",
        type=byte_count,
        metavar="BYTES",
        help="change the graph until it fits, and show other budgets; exit status 1 if no plan fits",
    )
    add_stream(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="OUT.svg", help="draw bytes against what they cost")
    parser.add_argument(
        "--paper", action="store_true", help="say instead what computing the peak in patches would save (DATE 2021)"
    )
    parser.add_argument("--precisions", action="store_true", help="bytes in float32, bfloat16 and int8 side by side")
    parser.add_argument("--svg", type=Path, metavar="OUT", help="draw the smallest plan")
    parser.add_argument(
        "--save", type=Path, metavar="OUT.json", help="write the smallest plan, with bands for --budget"
    )
    parser.add_argument("--json", action="store_true", help="print the smallest plan as JSON, and no table")
    parser.set_defaults(run=run)


def strategy_name(text: str) -> str:
    """Check the name of a strategy, or a Python reference to one."""
    if text not in CHOICES and not REFERENCE.fullmatch(text) and text not in entry_points_by_name():
        names = ", ".join((*CHOICES, *entry_points_by_name()))
        raise argparse.ArgumentTypeError(f"there is no strategy {text!r}. Use one of {names}, or module:function")
    return text


def strategy_of(name: str) -> Strategy:
    """Return the strategy of a name or Python reference. FormatError if the reference is not a function."""
    if not REFERENCE.fullmatch(name):
        return strategy_named(name)
    function = python_object(name, call=False)
    if not callable(function):
        raise FormatError(f"{name} is {function!r:.60}, not a function of a Problem. Name a memory strategy")
    return strategy_named(function)


def run(args: argparse.Namespace) -> int:
    """Print the table of the paper, streamed weights, bytes by precision, or all strategies side by side."""
    if args.paper:
        say("\n".join(paper_lines(model_from(args))))
        return 0
    if args.stream:
        return stream(args)
    if args.precisions:
        model = model_from(args)
        say("\n".join(precision_lines(model, constants_of(args, model.inputs), args.model)))
        return 0
    if args.output and (is_problem(args) or args.output.suffix.lower() != ".svg"):
        raise FormatError(f"{args.output}: a curve is drawn of a model, as .svg. Use -o OUT.svg")
    return compare(args)


def compare(args: argparse.Namespace) -> int:
    """Plan by each strategy, print and write the results; return 1 if no plan fits the budget."""
    problem, shown, graph = _read(args)
    budget = args.budget if is_problem(args) else None
    names = [args.strategy] if args.strategy else list(CHOICES if budget is None else WITHIN)
    try:
        plans = plans_of(problem, names, budget)
    except BudgetError as error:
        complain(error)
        return 1
    best = min((plan for plan, _ in plans.values()), key=lambda plan: plan.nbytes)
    if args.json:
        write(plan_text(problem, best, **graph), sys.stdout)
    else:
        _print_table(problem, plans)
        for line in shown:
            say(line)
    if args.svg:
        args.svg.write_text(plan_svg(problem, best), encoding="utf-8")
    if args.save and (is_problem(args) or args.budget is None):
        write_plan(args.save, problem, best, **graph)
    if not is_problem(args):
        return fit(args) if args.output or args.budget is not None else 0
    if args.budget is None or best.nbytes <= args.budget:
        return 0
    return _say_missing(best, args.budget, lower_bound(problem))


def stream(args: argparse.Namespace) -> int:
    """Print how streamed weights divide the budget, and the time that a run waits for them."""
    if is_problem(args):
        raise FormatError(f"{args.model}: only a model has weights to stream. Leave out --stream")
    model = model_from(args)
    with stream_options(args.stream) as streamed:
        try:
            function = model.compiled(memory=strategy_of(args.strategy or "auto"), budget=args.budget, **streamed)
        except BudgetError as error:
            complain(error)
            return 1
    values = random_inputs(model) | constants_of(args, model.inputs)
    figures = timed_report(function, *(values[x.name] for x in model.inputs))
    if figures.weights is None:
        say(f"no constant of {args.model} is large enough to be read from a file")
        return 0
    if args.json:
        say(figures.json())
        return 0
    resident = sum(x.nbytes for x in resident_constants(function.program.code))
    whole = function.nbytes + figures.weights.ring + resident
    say(
        f"arena {bytes_text(function.nbytes)}, ring {bytes_text(figures.weights.ring)}, constants in memory "
        f"{bytes_text(resident)}: {bytes_text(whole)} ({whole} bytes) in all; order {figures.order}"
    )
    say("\n".join(weights_lines(figures.weights, MOST_PIECES)))
    return 0


def fit(args: argparse.Namespace) -> int:
    """Change the model's graph until it fits into several budgets, the requested one among them, and print the
    changes.
    """
    curve = curve_of(model_from(args), args.budget, strategy_of(args.strategy or "auto"))
    tell = complain if args.json else say
    tell("\n".join(curve_lines(curve.points)))
    if args.output:
        args.output.write_text(curve_svg(curve.points, args.model), encoding="utf-8")
    if args.budget is None:
        return 0
    candidate, plan = curve.asked
    if plan.nbytes > args.budget:
        complain(budget_text(candidate.layout, candidate.usage.problem, plan, args.budget))
        return 1
    if args.save:
        graph = graph_facts(candidate.layout, candidate.usage)
        write_plan(args.save, candidate.usage.problem, plan, regions_of(curve.asked), **graph)
    tell(f"within the budget: {plan.nbytes} bytes, {candidate.order}")
    return 0


def plans_of(problem: Problem, names: Sequence[str], budget: int | None) -> dict[str, tuple[Plan, float]]:
    """Return the plan and seconds of each strategy; within a budget only until it is known whether it can be met.

    Raises
        BudgetError: only the exact search was requested, and no plan is within the budget
    """
    plans: dict[str, tuple[Plan, float]] = {}
    for name in with_progress("strategies", names, Bars()):
        within = budget is not None and name == "exact"
        strategy = partial(exact_with_progress, capacity=budget) if within else strategy_of(name)
        try:
            plans[name] = _timed(strategy, problem)
        except BudgetError:
            if not plans:
                raise
            continue
        if budget is not None and plans[name][0].nbytes <= budget:
            break
    return plans


def is_problem(args: argparse.Namespace) -> bool:
    """Return True if MODEL is a planning file, not a model."""
    return Path(args.model).suffix.lower() in READERS


def _read(args: argparse.Namespace) -> tuple[Problem, list[str], dict[str, Any]]:
    """Return the problem of a planning file or a model; of a model also the values alive at the peak and its graph."""
    if is_problem(args):
        return READERS[Path(args.model).suffix.lower()](Path(args.model)), [], {}
    function = model_from(args).compiled()
    assert function.compiled is not None
    layout, usage = function.compiled.layout, function.compiled.usage
    return usage.problem, peak_lines(report(function)), graph_facts(layout, usage)


def graph_facts(layout: Layout, usage: Usage) -> dict[str, Any]:
    """Return the schedule, Vars and constants of a plan.

    A step names the operand of the plan that has its value, and what it reads: ``step 3``, ``var 0`` or ``constant 2``.
    """
    number = {node: f"step {t}" for t, node in enumerate(layout.steps)}
    leaves: dict[str, list[dict[str, Any]]] = {"var": [], "constant": []}
    for x in layout.views:
        if not x.operands and x not in number:
            kind = "var" if isinstance(x.op, VarOp) else "constant"
            number[x] = f"{kind} {len(leaves[kind])}"
            leaves[kind].append({"name": x.name, "value": str(x.spec), "nbytes": x.nbytes, "line": x.place})
    steps = [
        {
            "step": t,
            "name": node.label,
            "op": node.op.name,
            "value": str(node.spec),
            "operand": usage.operand_of[t],
            "reads": [number[owner_of(layout.views[x])] for x in node.operands],
            "line": node.place,
        }
        for t, node in enumerate(layout.steps)
    ]
    return {"steps": steps, "vars": leaves["var"], "constants": leaves["constant"]}


def peak_lines(figures: Figures) -> list[str]:
    """Return the peak, and the values alive there."""
    head = [
        f"order {figures.order}: {bytes_text(figures.peak_nbytes)} are in use at step {figures.peak}, "
        f"{bytes_text(figures.unshared_nbytes)} would be without sharing; outside the arena "
        f"{bytes_text(figures.const_nbytes)} of constants and {bytes_text(figures.var_nbytes)} of Vars"
    ]
    return head + [f"{bytes_text(x.nbytes):>12}  {x.name}  {x.where}".rstrip() for x in figures.alive]


def _timed(strategy: Strategy, problem: Problem) -> tuple[Plan, float]:
    """Return a checked plan and its seconds. A quick strategy runs twice, and the second time counts."""
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
    say(f"{len(problem.operands)} operands")
    say(f"{'strategy':<26}{'bytes':>20}{'ratio':>9}{'ms':>10}")
    for name, nbytes in (("lower bound", bound), ("lower bound in blocks", block_lower_bound(problem))):
        say(f"{name:<26}{nbytes:>20}{_ratio(nbytes, bound):>9}")
    for name, (plan, seconds) in plans.items():
        made_by = "" if plan.strategy == name else f"  by {plan.strategy}"
        say(f"{name:<26}{plan.nbytes:>20}{_ratio(plan.nbytes, bound):>9}{seconds * 1e3:>10.2f}{made_by}")


def _ratio(nbytes: int, bound: int) -> str:
    return f"{nbytes / bound:.4f}" if bound else "-"


def _say_missing(plan: Plan, budget: int, bound: int) -> int:
    """Print how many bytes are missing, and return status 1."""
    complain(
        f"{plan.strategy} needs {bytes_text(plan.nbytes)}, the budget is {bytes_text(budget)}: "
        f"{plan.nbytes - budget} bytes are missing; no plan needs less than {bytes_text(bound)} ({bound} bytes)"
    )
    return 1
