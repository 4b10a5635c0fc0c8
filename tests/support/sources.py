"""The sources of both packages, parsed only where a text search finds that a rule may concern them."""

import ast
import re
from collections.abc import Collection, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def sources_with(words: Collection[str]) -> Iterator[tuple[str, ast.Module]]:
    """The path from the root and the tree of each module of `cgraph` and `nn` that holds one of some words."""
    may_matter = re.compile("|".join(map(re.escape, words))).search
    for top in ("cgraph", "nn"):
        for path in sorted((ROOT / top).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if may_matter(text):
                yield path.relative_to(ROOT).as_posix(), ast.parse(text)
