"""A page to explore a Function: the plan of its memory, its graph, and the values in use at every step.

The page is one file that uses no network: its policy forbids the browser to load anything, and to run any script except
the one whose hash it contains. Names from the graph are data in it, never markup.

Time O(n log n); about 400 bytes of text for each node. Only visible parts are drawn.
"""

import base64
import hashlib
import json
from importlib.resources import files

from cgraph.errors import GraphError
from cgraph.ir.graph import Node, public
from cgraph.view.blocks import memory_svg, summary
from cgraph.view.diagram import diagram_of
from cgraph.view.figures import Figures
from cgraph.view.frames import frame_memory, region_row, regions_of
from cgraph.view.page_data import as_json, page_data
from cgraph.view.planned import Shown, compiled_of, memory_of
from cgraph.view.report_text import region_text
from cgraph.view.sheet import Page
from cgraph.view.text import markup

SCRIPTS = ("viewport.js", "memory.js", "graph.js", "page.js")
MOST_NAMES = 3  # outputs named in a title


@public
def page_html(shown: Shown, title: str = "", times: Figures | None = None) -> Page:
    """Return the page of a Function, as HTML text, titled `title` or by its outputs. `times`, a timed report of the
    Function, adds the time of each step.

    GraphError if the Function has no plan, as on the reference engine, or if `times` are those of another Function or
    have no times.
    """
    memory, diagram = memory_of(shown), diagram_of(shown)
    title = title or ", ".join(x.name for x in compiled_of(shown).outputs[:MOST_NAMES])
    data = page_data(memory, diagram, summary(memory), compiled_of(shown).unshared_nbytes, seconds_of(shown, times))
    script, style = "".join(map(_text, SCRIPTS)), _text("page.css")
    parts = {
        "title": markup(title),
        "policy": f"default-src 'none'; img-src data:; script-src {_hash(script)}; style-src {_hash(style)}",
        "style": style,
        "script": script,
        "regions": "\n".join(region_part(t, node) for t, node in regions_of(shown)),
        "data": json.dumps(as_json(data), separators=(",", ":")).replace("<", "\\u003c"),
    }
    before, *rest = _text("page.html").split("{{")
    pieces = [(piece.split("}}", 1)) for piece in rest]
    return Page(before + "".join(parts[name] + after for name, after in pieces))


def seconds_of(shown: Shown, times: Figures | None) -> list[float]:
    """Return the measured seconds of each step."""
    if times is None:
        return []
    seconds = [row.seconds for row in times.steps if row.seconds is not None]
    names = [x.title for x in compiled_of(shown).layout.steps]
    if [row.op for row in times.steps] != names or len(seconds) != len(names):
        timed = ", ".join(row.op for row in times.steps if row.seconds is not None) or "no step"
        raise GraphError(
            f"times must be a timed report of the Function that the page shows: it has times of {timed:.60}, "
            f"but the steps are {', '.join(names):.60}. Pass times=timed_report(function, ...)"
        )
    return seconds


def region_part(step: int, node: Node) -> str:
    """Return a folding part about a region: savings and costs, and the picture of its band buffer."""
    svg = memory_svg(frame_memory(node), f"{node.title} at {node.place}: rows by bands")
    picture = base64.b64encode(svg.encode()).decode()
    text = markup(region_text(region_row(step, node)))
    return f'<details><summary>{text}</summary><img alt="Frame" src="data:image/svg+xml;base64,{picture}"></details>'


def _text(name: str) -> str:
    return (files("cgraph.view") / "web" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the hash of a script or a style as a policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
