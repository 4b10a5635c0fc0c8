"""Every picture, so that `cgraph.ir.graph.OPS` knows those that are functions of the package: ``cgraph.page_html``."""

from cgraph.view import dot, frames, graph_text, notebook, page, planned, report

__all__ = ["dot", "frames", "graph_text", "notebook", "page", "planned", "report"]
