"""Methods that pictures answer: `cgraph.view` is above everything it shows, so its functions are looked up in `OPS`."""

from typing import Any

from cgraph.ir.graph import OPS


class Viewable:
    """An object that `cgraph.view` can show, as a report and in a notebook."""

    def report(self) -> Any:
        """Bytes by step, the peak and what is in use there; printing it gives a table: see `cgraph.view.report`."""
        return OPS["report"](self)

    def _repr_html_(self) -> str | None:
        return OPS["notebook_html"](self)

    def _repr_svg_(self) -> str | None:
        return OPS["notebook_svg"](self)
