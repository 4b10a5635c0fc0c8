from cgraph.ir.graph import OPS
from docs.generate import BLOCKS, DOCS, TIMED, filled, ops_page


def test_blocks_are_filled_and_the_rest_stays():
    page = "a\n<!-- one -->\nold\n<!-- end -->\nb\n<!-- two -->\nkept\n<!-- end -->\n"
    assert filled(page, {"one": lambda: ["new", "lines"]}) == page.replace("old", "new\nlines")


def test_the_tables_of_the_memory_page_are_what_the_strategies_give():
    page = (DOCS / "memory.md").read_text()
    assert all(f"<!-- {name} -->" in page for name in BLOCKS | TIMED)
    assert filled(page, BLOCKS) == page


def test_the_page_of_ops_lists_every_public_function():
    page = ops_page()
    assert all(f"| `{name}` | " in page for name in OPS)
    assert "| `Conv2d` | " in page
