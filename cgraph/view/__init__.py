"""All pictures. Importing them registers functions such as ``cgraph.page_html`` in `cgraph.ir.graph.OPS`."""

from cgraph.view import dot, frames, graph_text, notebook, page, planned, report

__all__ = ["dot", "frames", "graph_text", "notebook", "page", "planned", "report"]


def __dir__() -> list[str]:
    return __all__
