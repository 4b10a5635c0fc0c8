"""``cgraph save MODEL -o folder``: compile a model and save it as a folder that loads without compiling."""

import argparse
from functools import partial
from pathlib import Path

from cgraph.cli.arguments import add_budget, add_memory
from cgraph.cli.model import CliModel, model_from
from cgraph.cli.model_arguments import add_model, constants_of
from cgraph.cli.pictures import add_look
from cgraph.cli.precision_arguments import add_precision, precision_options
from cgraph.cli.samples import Runs, runs_of
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.errors import FormatError, bytes_text
from cgraph.formats.onnx import serialised
from cgraph.kernels.isa.architectures import host_architecture
from cgraph.terminal import say

TARGETS = ("host", *(x.name for x in host_architecture().targets))


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "save",
        help="write a compiled model as a folder that loads without compiling",
        description="Compile a model and write its program, machine code and constants into a folder that cgraph run "
        "and cgraph.load run without compiling. The folder contains machine code: run only what you trust.",
    )
    add_model(parser)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER", help="the folder to create")
    parser.add_argument(
        "--target",
        choices=TARGETS,
        action="append",
        default=[],
        help="a processor to write code for, may be repeated; by default this one",
    )
    parser.add_argument("--graph", action="store_true", help="also write the graph, for other versions and processors")
    add_budget(parser)
    add_memory(parser)
    add_precision(parser)
    add_look(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compile for each target, write the folder, and print its contents."""
    model = model_from(args, invent=False)
    samples = partial(samples_of, args, model)
    options = {"memory": args.memory, "budget": args.budget} | precision_options(args, samples)
    targets = dict.fromkeys(args.target or ["host"])
    first, *others = (model.compiled(engine=CpuEngine(target, tiles=False), **options) for target in targets)
    graph = serialised(model.outputs, model.inputs, model.names) if args.graph else None
    first.save(args.output, also=others, graph=graph, names=model.names)
    for path in sorted(args.output.iterdir()):
        say(f"{bytes_text(path.stat().st_size):>10}  {path}")
    if first.precision is not None:
        say(first.precision)
    return 0


def samples_of(args: argparse.Namespace, model: CliModel) -> Runs:
    """Return the samples of --samples. FormatError without the argument."""
    if args.samples is None:
        raise FormatError("--precision ERROR measures errors with samples. Give --samples FOLDER")
    return runs_of(args, model.inputs, constants_of(args, model.inputs))
