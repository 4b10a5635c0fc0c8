"""One page to explore a Function: the plan of its memory, its graph beside it, and what is in use at every step.

The page is one file that asks nothing of a network: its policy forbids the browser to load anything, and to run any
script but the one whose hash it names. Names from the graph are data in it, never markup.

Time O(n log n); about 400 bytes of text for each node. Drawing leaves out what is not in sight.
"""

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

from cgraph.ir.graph import public
from cgraph.view.blocks import summary
from cgraph.view.boxes import WORKSPACE, Memory, drawn_until
from cgraph.view.diagram import Diagram, diagram_of
from cgraph.view.layered import layered
from cgraph.view.planned import Shown, compiled_of, memory_of
from cgraph.view.text import HUES, hue_of, markup, plain

SCRIPTS = ("viewport.js", "memory.js", "graph.js", "page.js")


@public
def page_html(shown: Shown, title: str = "") -> str:
    """The page of a Function, as HTML text. GraphError when it has no plan, as on the reference engine."""
    memory, diagram = memory_of(shown), diagram_of(shown)
    title = title or "Memory and graph"
    data = {
        "title": plain(title),
        "summary": summary(memory),
        "unshared": compiled_of(shown).unshared_nbytes,
        "hues": [hue_of(i) for i in range(HUES)],
        **_memory_data(memory),
        **_graph_data(diagram),
    }
    script, style = "".join(map(_text, SCRIPTS)), _text("page.css")
    parts = {
        "title": markup(title),
        "policy": f"default-src 'none'; img-src data:; script-src {_hash(script)}; style-src {_hash(style)}",
        "style": style,
        "script": script,
        "data": json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
    }
    before, *rest = _text("page.html").split("{{")
    pieces = [(piece.split("}}", 1)) for piece in rest]
    return before + "".join(parts[name] + after for name, after in pieces)


def _memory_data(memory: Memory) -> dict[str, Any]:
    """Rows of boxes, in the order that `memory.js` reads."""
    boxes = [
        (
            plain(x.name), x.spec, plain(x.where), x.nbytes, x.offset, x.first, x.last, x.block,
            int(x.kind == WORKSPACE), x.over, x.inside, until,
        )
        for x, until in zip(memory.boxes, drawn_until(memory.boxes))
    ]  # fmt: skip
    return {
        "boxes": boxes,
        "reserved": [(x.offset, x.nbytes, x.first, x.last, x.block) for x in memory.reserved],
        "nbytes": memory.nbytes,
        "bound": memory.lower_bound,
        "peak": memory.peak,
        "peakBytes": memory.peak_nbytes,
        "first": memory.first,
        "last": memory.last,
        "changes": memory.changes.tolist(),
        "inUse": memory.in_use.tolist(),
    }


def _graph_data(diagram: Diagram) -> dict[str, Any]:
    """Rows of items, in the order that `graph.js` reads."""
    columns, layers = layered([x.operands for x in diagram.items])
    items = [
        (
            plain(x.name), x.kind, x.spec, plain(x.where), x.value, x.nbytes, x.step, x.box, x.block, x.operands,
            int(x.output), round(column, 2), layer,
        )
        for x, column, layer in zip(diagram.items, columns, layers)
    ]  # fmt: skip
    return {"items": items, "updates": diagram.updates}


def _text(name: str) -> str:
    return (files("cgraph.view") / "web" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """How a policy names a script or a style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
