"""``cgraph trace MODEL -o FILE``: write times of steps and threads, and bytes in use, for Perfetto or Chrome."""

import argparse
from pathlib import Path

from cgraph.cli.arguments import add_memory, add_threads
from cgraph.cli.bench import random_inputs
from cgraph.cli.model import model_from
from cgraph.cli.model_arguments import add_model, constants_of
from cgraph.engine.cpu.cores import cores
from cgraph.errors import FormatError
from cgraph.terminal import say
from cgraph.view.report import timed_report
from cgraph.view.report_text import seconds_text
from cgraph.view.timing import record_run, run_nanoseconds
from cgraph.view.trace import trace_json


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "trace",
        help="write the time of each step for Perfetto",
        description="Time the steps of a model one by one on random inputs from a fixed seed, record what each thread "
        "does in a run, and write both with the bytes in use as a trace, which ui.perfetto.dev and chrome://tracing "
        "open.",
    )
    add_model(parser)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.json", help="where to write")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="runs; the times are those of the shortest")
    add_threads(parser)
    add_memory(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the trace and say in one line what it shows."""
    if args.runs < 1:
        raise FormatError(f"--runs is {args.runs}. Give at least 1")
    model = model_from(args)
    function = model.compiled(memory=args.memory, threads=args.threads)
    values = random_inputs(model) | constants_of(args, model.inputs)
    figures = timed_report(function, *values.values(), repeats=args.runs)
    shares = record_run(function, tuple(values.values()), {}, args.runs)
    threads = f"{args.threads or cores()} threads"
    args.output.write_text(trace_json(figures, shares, f"{args.model}, {threads}"), encoding="utf-8")
    alone = seconds_text(figures.seconds or 0.0)
    run = seconds_text(run_nanoseconds(shares) / 1e9)
    say(f"{args.output}: {len(figures.steps)} steps on {threads}, {alone} one by one, {run} in a run")
    return 0
