"""Pictures and pages as text, with the methods by which notebooks show them."""

from base64 import b64encode

SHEET = """
.sheet{fill:#fff}
text{font:12px system-ui,sans-serif;fill:#4b5563}
.title{font-size:17px;font-weight:600;fill:#111827}
.end{text-anchor:end}.middle{text-anchor:middle}
.grid{stroke:#e5e7eb;fill:none}.axis{stroke:#9ca3af;fill:none}
"""
"""The style of all pictures on a white background."""

DARK_SHEET = ".sheet{fill:#111827}text{fill:#9ca3af}.title{fill:#f3f4f6}.grid{stroke:#1f2937}.axis{stroke:#6b7280}"
"""Changes to the style on a dark screen."""


class Svg(str):
    """A picture as self-contained SVG text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<picture of {len(self):,} letters>"

    def _repr_svg_(self) -> str:
        return str(self)


class Page(str):
    """A page as self-contained HTML text. A notebook shows it in a frame."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<page of {len(self):,} letters>"

    def _repr_html_(self) -> str:
        data = b64encode(self.encode()).decode()
        return (
            '<iframe sandbox="allow-scripts" style="width:100%;height:640px;border:0" '
            f'src="data:text/html;charset=utf-8;base64,{data}"></iframe>'
        )


def style_of(own: str, dark: str = "") -> str:
    """Return the style of a picture: the common one and its own, and their changes for a dark screen."""
    return f"<style>{SHEET}{own}@media (prefers-color-scheme:dark){{{DARK_SHEET}{dark}}}</style>"


def heading(width: int, height: int) -> str:
    """Return the beginning of a picture of ``width x height`` pixels."""
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
