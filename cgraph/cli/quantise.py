"""``cgraph quantise MODEL --samples FOLDER -o q.onnx``: quantise a model to 8-bit integers with samples."""

import argparse
import json
from pathlib import Path
from typing import Any

from cgraph.cli.arguments import whole_number
from cgraph.cli.model import CliModel, model_from
from cgraph.cli.model_arguments import add_model, constants_of
from cgraph.cli.pictures import add_look
from cgraph.cli.samples import runs_of
from cgraph.errors import FormatError
from cgraph.formats.npz import read_npy
from cgraph.formats.onnx import save
from cgraph.ir.traverse import post_order
from cgraph.ops.leaf import Var
from cgraph.passes.integers.patterns import EIGHT_BITS
from cgraph.quantiser import Bars, quantise
from cgraph.quantiser.ranges import METHODS
from cgraph.terminal import say


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "quantise",
        help="make a model's values bytes, and write it as ONNX",
        description="Run a float model on samples, choose how bytes stand for its values, and write it with "
        "QuantizeLinear and DequantizeLinear, as an ONNX file that any engine runs.",
    )
    add_model(parser)
    parser.add_argument(
        "--samples", type=Path, required=True, metavar="FOLDER", help="pictures, .npy or .npz files; or one such file"
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT.onnx")
    parser.add_argument("--most", type=whole_number, default=200, metavar="N", help="runs of the model, 200 by default")
    add_look(parser)
    parser.add_argument("--method", choices=METHODS, default="minmax", help="how ranges are found")
    parser.add_argument("--images", choices=EIGHT_BITS, default="uint8", help="what values become")
    parser.add_argument("--symmetric", action="store_true", help="zero in the middle of the bytes")
    parser.add_argument("--as-they-are", action="store_true", help="leave biases as they are")
    parser.add_argument("--skip", action="append", default=[], metavar="LAYER", help="a layer that stays float")
    parser.add_argument("--agreement", type=float, metavar="SHARE", help="of samples that must keep their answer")
    parser.add_argument("--table", action="store_true", help="print the loss of accuracy of each layer")
    parser.add_argument("--wanted", type=Path, metavar="FILE.npy", help="the right class of each sample")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Quantise, write the file, and print the report."""
    if args.output.suffix.lower() != ".onnx":
        raise FormatError(f"{args.output}: the result is written as .onnx. Use -o OUT.onnx")
    model = model_from(args, invent=False)
    inputs = inputs_of(model, args.model)
    runs = runs_of(args, inputs, constants_of(args, inputs))
    options: dict[str, Any] = {name: getattr(args, name) for name in ("method", "images", "symmetric", "agreement")}
    options |= {"correct": not args.as_they_are, "skip": tuple(args.skip), "sensitivity": args.table}
    labels = None if args.wanted is None else read_npy(args.wanted)
    network = quantise(model.outputs, inputs, runs, labels, Bars(), **options)
    save(args.output, network.outputs, network.inputs, model.names)
    say(json.dumps(network.report.facts(), indent=1) if args.json else network.report)
    return 0


def inputs_of(model: CliModel, reference: str) -> tuple[Var, ...]:
    """Return the model's inputs; for bare nodes the Vars without a value."""
    if model.function is not None or model.updates:
        raise FormatError(f"{reference} is compiled already or keeps a state; give a function that returns nodes")
    if model.read is not None:
        raise FormatError(
            f"{reference} has lengths that are known only when run, which are not quantised. Give them with --shape"
        )
    return model.inputs or tuple(x for x in post_order(model.outputs) if isinstance(x, Var) and not x.is_assigned)
