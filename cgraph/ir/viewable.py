"""Methods that pictures answer: `cgraph.view` is above everything it shows, so its functions are looked up in `OPS`.

Pictures are loaded when they are first asked for: a process that only computes starts without them.
"""

from importlib import import_module
from typing import Any

from cgraph.ir.graph import OPS


class Viewable:
    """An object that `cgraph.view` can show, as a report and in a notebook."""

    def report(self) -> Any:
        """Bytes by step, the peak and what is in use there; printing it gives a table: see `cgraph.view.report`."""
        return shown("report", self)

    def _repr_html_(self) -> str | None:
        return shown("notebook_html", self)

    def _repr_svg_(self) -> str | None:
        return shown("notebook_svg", self)


def shown(name: str, x: Any) -> Any:
    """What the picture of this name is of `x`."""
    if name not in OPS:
        import_module("cgraph.view")
    return OPS[name](x)
