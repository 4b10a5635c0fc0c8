"""How a Function looks in a notebook."""

from cgraph.function import Function
from cgraph.view.planned import function_svg
from cgraph.view.report import report


def notebook_html(function: Function) -> str | None:
    """The picture of its memory over its report; None on the reference engine, which has no plan."""
    if function.compiled is None:
        return None
    return f'<div style="max-width:1200px;overflow-x:auto">{function_svg(function)}</div>\n{report(function).html()}'


def notebook_svg(function: Function) -> str | None:
    """The picture of its memory; None on the reference engine."""
    return None if function.compiled is None else function_svg(function)
