"""What the page says stands in the code, line for line."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXCERPT = re.compile(r"<!-- (\S+) -->\n```python\n(.*?)```", re.DOTALL)


def test_excerpts_are_the_code():
    excerpts = EXCERPT.findall((ROOT / "docs" / "add_a_kernel.md").read_text())
    assert len(excerpts) == 4
    for path, text in excerpts:
        assert text in (ROOT / path).read_text(), path


def test_every_file_that_the_page_names_is_there():
    page = (ROOT / "docs" / "add_a_kernel.md").read_text()
    for name in re.findall(r"`((?:\w+/)+\w+\.py)`", page):
        assert (ROOT / name).exists() or (ROOT / "cgraph" / name).exists(), name
