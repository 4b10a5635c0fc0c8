"""``cgraph view MODEL -o FILE``: draw a model's memory or graph, or write a page with both, by the file's suffix."""

import argparse
from collections.abc import Callable
from pathlib import Path

from cgraph.cli.arguments import add_budget
from cgraph.cli.bench import random_inputs
from cgraph.cli.model import CliModel, model_from
from cgraph.cli.model_arguments import add_model, constants_of
from cgraph.errors import FormatError, GraphError
from cgraph.function import Function
from cgraph.terminal import say
from cgraph.view.blocks import summary
from cgraph.view.diagram import diagram_of
from cgraph.view.dot import function_dot, graph_dot, render
from cgraph.view.page import page_html
from cgraph.view.planned import function_svg, memory_of
from cgraph.view.report import FunctionReport, timed_report

MEMORY, GRAPH = "memory", "graph"
MOST_DRAWN = 150  # maximum number of nodes in one picture
Draw = Callable[[Function, str], str | bytes]
PICTURES: dict[tuple[str, str], Draw] = {
    (".svg", MEMORY): function_svg,
    (".svg", GRAPH): lambda function, _: graph_picture(function, "svg"),
    (".png", GRAPH): lambda function, _: graph_picture(function, "png"),
    (".dot", GRAPH): lambda function, _: function_dot(function),
    (".html", MEMORY): page_html,
    (".html", GRAPH): page_html,
}
DEFAULTS = {".svg": MEMORY, ".html": MEMORY, ".png": GRAPH, ".dot": GRAPH}


def graph_picture(function: Function, kind: str) -> bytes:
    """Draw the whole graph in one picture. GraphError if it has too many nodes to read."""
    count = len(diagram_of(function).items)
    if count > MOST_DRAWN:
        raise GraphError(
            f"{count} nodes are more than the {MOST_DRAWN} of a readable picture. Use -o page.html or -o graph.dot"
        )
    return render(function_dot(function), kind)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "view",
        help="draw the memory and the graph of a model",
        description="Draw a model: .html is a page to explore memory and graph, .svg the memory (or the graph, with "
        "--graph), .dot and .png the graph. Graphs as .svg and .png need the program dot.",
    )
    add_model(parser)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="where to write")
    parser.add_argument("--graph", action="store_true", help="draw the graph, where an ending could be either")
    parser.add_argument(
        "--as-written", action="store_true", help="with .dot: the graph before any pass, without a plan"
    )
    parser.add_argument("--times", action="store_true", help="with .html: time each step separately on random inputs")
    parser.add_argument("--memory", metavar="STRATEGY", help="plan by this strategy")
    add_budget(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the picture and say in one line what it shows."""
    ending = args.output.suffix.lower()
    draw = PICTURES.get((ending, GRAPH if args.graph else DEFAULTS.get(ending, "")))
    if draw is None:
        raise FormatError(f"{args.output}: cannot draw a {ending or 'nameless'} file. Use one of {', '.join(DEFAULTS)}")
    model = model_from(args)
    if args.as_written:
        return _write_graph(model, args.output, ending)
    options = {name: getattr(args, name) for name in ("memory", "budget")}
    function = model.compiled(**{name: value for name, value in options.items() if value is not None})
    if args.times and ending != ".html":
        raise FormatError(f"{args.output}: --times go into a page. Use -o OUT.html")
    drawn = (
        page_html(function, args.model, time_model(model, function, args)) if args.times else draw(function, args.model)
    )
    args.output.write_bytes(drawn if isinstance(drawn, bytes) else drawn.encode())
    say(f"{args.output}: {summary(memory_of(function))}")
    return 0


def time_model(model: CliModel, function: Function, args: argparse.Namespace) -> FunctionReport:
    """Return the report with the times of steps, on random inputs."""
    values = random_inputs(model) | constants_of(args, model.inputs)
    return timed_report(function, *(values[x.name] for x in model.inputs))


def _write_graph(model: CliModel, output: Path, ending: str) -> int:
    if ending != ".dot":
        raise FormatError(f"{output}: a graph as it was written is drawn as .dot only. Use -o OUT.dot")
    text = graph_dot(model.outputs, model.updates)
    output.write_text(text, encoding="utf-8")
    say(f"{output}: the graph as it was written")
    return 0
