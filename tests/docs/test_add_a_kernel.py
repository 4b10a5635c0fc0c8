"""The page's excerpts are the code, line for line."""

import re
from pathlib import Path

from docs.generate import EXCERPT, with_excerpts

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "add_a_kernel.md"


def test_excerpts_are_the_code():
    page = PAGE.read_text()
    assert len(EXCERPT.findall(page)) == 4
    assert with_excerpts(page) == page, "python -m docs.generate copies them"


def test_every_file_that_the_page_names_is_there():
    for name in re.findall(r"`((?:\w+/)+\w+\.py)`", PAGE.read_text()):
        assert (ROOT / name).exists() or (ROOT / "cgraph" / name).exists(), name
