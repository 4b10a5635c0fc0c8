import re

import pytest

from cgraph.ir.graph import OPS
from docs.generate import BLOCKS, DOCS, TABLES, TIMED, filled, ops_page, plan_picture
from docs.house import house


def test_blocks_are_filled_and_the_rest_stays():
    page = "a\n<!-- one -->\nold\n<!-- end -->\nb\n<!-- two -->\nkept\n<!-- end -->\n"
    assert filled(page, {"one": lambda: ["new", "lines"]}) == page.replace("old", "new\nlines")


def test_the_planner_tables_are_what_the_strategies_give():
    page = TABLES.read_text()
    assert all(f"<!-- {name} -->" in page for name in BLOCKS | TIMED)
    assert filled(page, BLOCKS) == page


def test_the_page_of_ops_lists_every_public_function():
    page = ops_page()
    assert all(f"| `{name}` | " in page for name in OPS)
    assert "| `Conv2d` | " in page


def test_the_picture_of_the_packages_shows_the_import_contract():
    assert (DOCS / "architecture.svg").read_text() == house(), "python -m docs.generate draws it"


@pytest.mark.slow
def test_the_picture_of_the_readme_is_what_the_plan_gives():
    assert "](docs/memory_plan.svg)" in (DOCS.parent / "README.md").read_text()
    drawn, kept = (
        re.sub(r"\.py:\d+", ".py", text) for text in (plan_picture(), (DOCS / "memory_plan.svg").read_text())
    )
    assert drawn == kept, "python -m docs.generate draws it"
