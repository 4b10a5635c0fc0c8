"""Functions and nodes in notebooks."""

from cgraph.errors import bytes_text
from cgraph.function import Function
from cgraph.ir.graph import Node
from cgraph.view.diagram import DiagramItem, diagram_of_nodes
from cgraph.view.planned import function_svg
from cgraph.view.report import report
from cgraph.view.report_html import STYLE, cell, number, table

MOST_ITEMS = 30  # the last rows of a graph's table


def notebook_html(function: Function) -> str | None:
    """Return the picture of a Function's memory above its report; None on the reference engine, which has no plan."""
    if function.compiled is None:
        return None
    return f'<div style="max-width:1200px;overflow-x:auto">{function_svg(function)}</div>\n{report(function).html()}'


def notebook_svg(function: Function) -> str | None:
    """Return the picture of a Function's memory; None on the reference engine."""
    return None if function.compiled is None else function_svg(function)


def node_html(node: Node) -> str:
    """Return a node below the nodes it is computed from, as a table; nothing is computed."""
    items = diagram_of_nodes((node,)).items
    first = max(0, len(items) - MOST_ITEMS)
    rows = [_row(i, item, first) for i, item in enumerate(items) if i >= first]
    above = f"<p>{first} nodes before these</p>" if first else ""
    head = ("", "op", "of", "result", "bytes", "where")
    return f'<div class="cgraph"><style>{STYLE}</style>{above}{table(head, rows)}</div>'


def _row(i: int, item: DiagramItem, first: int) -> tuple[str, ...]:
    name = f"{item.name} = {item.value}" if item.value else item.name
    operands = " ".join(str(x) if x >= first else f"{x}…" for x in item.operands)
    texts = (cell(text) for text in (name, operands, item.spec))
    return number(str(i)), *texts, number(bytes_text(item.nbytes)), cell(item.where)
