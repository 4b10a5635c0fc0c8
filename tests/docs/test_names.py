"""What pages name is there: files, decisions, commands."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PLACES = (ROOT, ROOT / "cgraph", ROOT / "nn", ROOT / "docs", ROOT / "docs" / "decisions")
FILE = re.compile(r"`((?:[\w.]+/)+\w+\.(?:py|md|txt|svg))`")
DECISION = re.compile(r"decisions/(\d{4})")
COMMAND = re.compile(r"python -m ((?:benchmarks|docs|examples|nn|tests|cgraph)[\w.]*\w)")
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@every_page
def test_every_file_that_a_page_names_is_there(page):
    named = [name for name in FILE.findall(page.read_text()) if not name.startswith(("../", "out/"))]
    assert [name for name in named if not any((place / name).exists() for place in PLACES)] == []


@every_page
def test_every_decision_that_a_page_names_is_there(page):
    numbers = [path.name[:4] for path in (ROOT / "docs" / "decisions").glob("*.md")]
    assert set(DECISION.findall(page.read_text())) <= set(numbers)


@every_page
def test_every_command_that_a_page_names_is_there(page):
    assert [name for name in COMMAND.findall(page.read_text()) if find_spec(name) is None] == []


def test_no_two_decisions_have_one_number():
    numbers = [path.name[:4] for path in (ROOT / "docs" / "decisions").glob("*.md")]
    assert len(numbers) == len(set(numbers))
