"""Pictures and pages as texts: what a notebook shows of them, and what a terminal does."""

import base64
import re

import pytest

from cgraph.view.sheet import Page, Svg, heading, style_of


@pytest.mark.parametrize(("text", "size"), [("", "0"), ("ä×…", "3"), ("x" * 1234, "1,234")])
def test_a_terminal_shows_the_number_of_letters(text, size):
    assert repr(Svg(text)) == f"<picture of {size} letters>" and repr(Page(text)) == f"<page of {size} letters>"
    assert Svg(text) == Page(text) == text


def test_a_notebook_shows_the_picture_itself_and_the_page_in_a_frame():
    text = "<svg>ä</svg>"
    assert Svg(text)._repr_svg_() == text and type(Svg(text)._repr_svg_()) is str
    frame = Page(text)._repr_html_()
    (data,) = re.findall('src="data:text/html;charset=utf-8;base64,([^"]*)"', frame)
    assert base64.b64decode(data).decode() == text and 'sandbox="allow-scripts"' in frame


def test_a_style_has_its_changes_for_a_dark_screen_and_a_heading_its_width_first():
    style = style_of(".own{fill:red}", ".own{fill:blue}")
    light, dark = style.split("@media (prefers-color-scheme:dark){")
    assert ".own{fill:red}" in light and ".own{fill:blue}" in dark and dark.endswith("}}</style>")
    assert light.startswith("<style>") and ".sheet{fill:#fff}" in light and ".sheet{fill:#111827}" in dark
    assert heading(3, 4).endswith('viewBox="0 0 3 4" width="3" height="4">')
