"""``cgraph show MODEL [--after PASS]``: the graph of a model as text."""

import argparse

from cgraph.cli.model import model_from
from cgraph.cli.model_arguments import add_model
from cgraph.terminal import say
from cgraph.view.graph_text import text


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "show",
        help="print the graph of a model as text",
        description="Print one line for each node: op, operands, parameters, shape and dtype.",
    )
    add_model(parser)
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument(
        "--after", metavar="PASS", help="after this pass and all before it, such as fold_constants; or all"
    )
    shown.add_argument("--trace", action="store_true", help="after each pass that changes the graph")
    shown.add_argument("--compiled", action="store_true", help="as it runs: after lowering, with update edges")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the text."""
    model = model_from(args)
    if args.compiled:
        say(text(model.compiled()))
        return 0
    say(text(model.outputs, passes="trace" if args.trace else args.after))
    return 0
