"""Every picture, so that `cgraph.ir.graph.OPS` knows what answers `Function.report` and what notebooks ask for."""

from cgraph.view import dot, notebook, page, planned, report

__all__ = ["dot", "notebook", "page", "planned", "report"]
