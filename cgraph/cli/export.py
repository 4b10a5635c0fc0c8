"""``cgraph export MODEL --target cortex-m7 -o folder``: a model as an object file and a C header."""

import argparse
from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import Any

from cgraph.cli.arguments import add_budget
from cgraph.cli.model import model_from
from cgraph.cli.model_arguments import add_model, size
from cgraph.kernels.machines import machines
from cgraph.standalone.export import export
from cgraph.standalone.settings import FORMS, MEMORY
from cgraph.standalone.several import export_sizes
from cgraph.terminal import say

LIST = "list"


class TargetAction(argparse.Action):
    """Store a target's name; ``list`` prints all targets and ends the command, as ``--help`` does."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: Any = None) -> None:
        if values == LIST:
            for name, row in machines().items():
                fma = ", fused multiply-add" if row.target.fma else ""
                say(f"{name:24} {row.generation.triple:32} {row.target.lanes} lanes{fma}")
            parser.exit()
        setattr(namespace, self.dest, values)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "export",
        help="write a model as native code with a C header, without Python",
        description="Compile a model for a processor and write an object file, a C header, an example and check "
        "vectors into a new folder. The code needs no Python, no interpreter and no allocation.",
    )
    add_model(parser)
    parser.add_argument(
        "--target",
        required=True,
        choices=[LIST, *machines()],
        metavar="NAME",
        action=TargetAction,
        help="the processor; list prints all of them",
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER", help="the folder to create")
    parser.add_argument("--name", help="prefix of all C names; the folder's name by default")
    parser.add_argument(
        "--form",
        choices=FORMS,
        default="whole",
        help="optimise together, for size, keep kernels apart, or write the entry as C",
    )
    parser.add_argument(
        "--memory", choices=MEMORY, default="static", help="arena in the object file or in the caller's memory"
    )
    parser.add_argument("--reset", action="store_true", help="add a function that restores the state")
    parser.add_argument("--floats", action="store_true", help="8-bit inputs and outputs of a .tflite file as floats")
    parser.add_argument(
        "--sizes",
        action="append",
        type=sizes_from,
        default=[],
        metavar="NAME=N[,NAME=N]",
        help="sizes of symbolic dimensions; --sizes batch=1 --sizes batch=8 writes one object file with a run for each",
    )
    add_budget(parser)
    parser.set_defaults(run=run)


def sizes_from(text: str) -> dict[str, Any]:
    """Return the sizes of ``NAME=N,NAME=N``. ArgumentTypeError for another text."""
    return dict(map(size, text.split(",")))


def run(args: argparse.Namespace) -> int:
    """Write the folder and print its sizes."""
    if args.sizes:
        return run_sizes(args)
    model = model_from(args, invent=False, floats=args.floats)
    result = export(
        model.outputs, model.inputs, args.output, target=args.target, updates=model.updates, name=args.name,
        names=model.names, form=args.form, memory=args.memory, reset=args.reset, budget=args.budget,
    )  # fmt: skip
    say(str(result))
    return 0


def run_sizes(args: argparse.Namespace) -> int:
    """Write one folder for all sizes and print its sizes."""

    def model_at(sizes: Mapping[str, int]) -> Any:
        own = copy(args)
        own.shape = [*args.shape, *sizes.items()]
        return model_from(own, invent=False, floats=args.floats)

    def build(sizes: Mapping[str, int]) -> tuple:
        model = model_at(sizes)
        return model.outputs, model.inputs, model.updates

    result = export_sizes(
        build, args.sizes, args.output, target=args.target, name=args.name, names=model_at(args.sizes[0]).names,
        form=args.form, memory=args.memory, reset=args.reset, budget=args.budget,
    )  # fmt: skip
    say(str(result))
    return 0
