"""A graph as DOT, the language of Graphviz, and as a picture if its program `dot` is installed.

One colour is one block of bytes, the same as in the picture of the memory. A dashed outline is a view, in the colour of
its bytes. Ellipses are Vars, notes are Consts, a double outline is an output, a dashed line is an update edge. A graph
that is not compiled has no colours.

Time O(n) for the text. The program `dot` is slow for more than a few thousand nodes; `cgraph.view.page` is not.
"""

from collections.abc import Iterable, Iterator, Mapping

from cgraph.errors import GraphError, UnavailableError, bytes_text
from cgraph.ir.graph import Node, NodeLike, public
from cgraph.ops.leaf import Var
from cgraph.terminal import visible
from cgraph.view.diagram import CONST, OP, VAR, VIEW, Diagram, DiagramItem, diagram_of, diagram_of_nodes
from cgraph.view.planned import Shown
from cgraph.view.text import colour_of, plain

FORMATS = ("svg", "png")
SHAPES = {OP: "box", VIEW: "box", VAR: "ellipse", CONST: "note"}
STYLES = {OP: "filled,rounded", VIEW: "filled,rounded,dashed", VAR: "filled", CONST: "filled"}
NO_BLOCK = {OP: "#ffffff", VIEW: "#ffffff", VAR: "#e0ecff", CONST: "#f3f4f6"}
UPDATE = 'style=dashed, color="#b91c1c", fontcolor="#b91c1c", constraint=false, label="update"'
STRAIGHT = " [weight=8]"  # chains of values run straight down; edges of constants do not bend them
HEAD = """digraph cgraph {
  graph [rankdir=TB, fontname="Helvetica", ranksep=0.35, nodesep=0.25]
  node [fontname="Helvetica", fontsize=10, color="#4b5563", fontcolor="#111827", margin="0.12,0.06"]
  edge [color="#6b7280", arrowsize=0.6, fontname="Helvetica", fontsize=9]"""


@public
def function_dot(shown: Shown) -> str:
    """Return the graph of a Function as it runs, coloured by its plan, as DOT text."""
    return diagram_dot(diagram_of(shown))


@public
def graph_dot(outputs: NodeLike | Iterable[NodeLike], updates: Mapping[Var, NodeLike] | None = None) -> str:
    """Return the user's graph, before any pass, as DOT text."""
    return diagram_dot(diagram_of_nodes((outputs,) if isinstance(outputs, Node) else outputs, updates))


def render(dot: str, kind: str) -> bytes:
    """Return the picture of a DOT text, as ``svg`` or ``png``.

    Raises
        UnavailableError: Graphviz, or the package that calls it, is not installed
        GraphError: `kind` is neither; Graphviz fails
    """
    if kind not in FORMATS:
        raise GraphError(f"Graphviz draws {' and '.join(FORMATS)} here, not {kind!r}. Use one of these")
    try:
        import graphviz
    except ImportError as error:
        raise UnavailableError("the Python package graphviz is not installed: pip install graphviz") from error
    try:
        return graphviz.pipe("dot", kind, dot.encode(), quiet=True)
    except graphviz.ExecutableNotFound as error:
        raise UnavailableError(
            "the program dot is not installed. Install it (Debian: apt install graphviz), or use the DOT text, the "
            "page or the picture of the memory, which need no program"
        ) from error
    except graphviz.CalledProcessError as error:
        raise GraphError(f"Graphviz fails: {plain(str(error))}") from error


def diagram_dot(diagram: Diagram) -> str:
    """Return DOT text of a graph."""
    return "\n".join([HEAD, *_nodes(diagram), *_edges(diagram), "}"]) + "\n"


def quote(text: str) -> str:
    """Return a DOT string that shows exactly this text, with escapes and entities made harmless."""
    shown = visible(text, "\n").replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;").replace("\n", "\\n")
    return f'"{shown}"'


def _nodes(diagram: Diagram) -> Iterator[str]:
    for i, x in enumerate(diagram.items):
        outline = ", peripheries=2" if x.output else ""
        yield f'  n{i} [label={_label(x)}, shape={SHAPES[x.kind]}, style="{STYLES[x.kind]}", {_fill(x)}{outline}]'


def _label(item: DiagramItem) -> str:
    name = f"{plain(item.name)} = {item.value}" if item.value else plain(item.name)
    step = f", step {item.step}" if item.step >= 0 else ""
    size = "view" if item.kind == VIEW else bytes_text(item.nbytes)
    return quote(f"{name}\n{plain(item.spec)}\n{size}{step}\n{plain(item.where)}")


def _fill(item: DiagramItem) -> str:
    colour = colour_of(item.block) if item.block >= 0 else NO_BLOCK[item.kind]
    return f'fillcolor="{colour}"'


def _edges(diagram: Diagram) -> Iterator[str]:
    for i, item in enumerate(diagram.items):
        for x in item.operands:
            is_leaf = diagram.items[x].kind in (VAR, CONST)
            yield f"  n{x} -> n{i}" + ("" if is_leaf else STRAIGHT)
    for source, var in diagram.updates:
        yield f"  n{source} -> n{var} [{UPDATE}]"
