"""Docstrings and sentences of the documentation, drawn at random to be read by somebody new to the project.

python -m benchmarks.prose [--seed N] [--count 60]

Docstrings are those of modules and of public classes, functions and methods of cgraph and nn. Sentences are those of
paragraphs and lists of ``docs/*.md`` and README.md, without tables and code.
"""

import argparse
import ast
import random
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\[])")
NOT_PROSE = re.compile(r"^\s*(?:#|\||!\[|```|$)")


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each docstring."""
    for path in (path for top in ("cgraph", "nn") for path in sorted((ROOT / top).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(node, "name", "")
            if isinstance(node, DOCUMENTED) and not name.startswith("_") and (text := ast.get_docstring(node)):
                yield f"{path.relative_to(ROOT)} {name}".rstrip(), text


def sentences() -> Iterator[tuple[str, str]]:
    """Yield the page and the text of each sentence."""
    for path in (*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"):
        text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        lines = (
            "" if NOT_PROSE.match(line) else re.sub(r"^\s*(?:[-*]|\d+\.) ", "\n\n", line) for line in text.split("\n")
        )
        for paragraph in re.split(r"\n\s*\n", "\n".join(lines)):
            for sentence in SENTENCE_END.split(" ".join(paragraph.split())):
                if len(sentence.split()) > 3:
                    yield str(path.relative_to(ROOT)), sentence


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=60)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    for texts in (list(docstrings()), list(sentences())):
        for place, text in rng.sample(texts, options.count):
            print(f"{place}\n{textwrap.indent(text, '    ')}")


if __name__ == "__main__":
    main()
