"""Texts that a test compares with a file of sections, each with a line ``== name`` above it."""

from collections.abc import Mapping
from pathlib import Path

MARK = "== "


def write_sections(path: Path, texts: Mapping[str, str]) -> None:
    """Write texts, whose lines may not begin with the mark."""
    path.write_text("".join(f"{MARK}{name}\n{text}\n" for name, text in texts.items()), encoding="utf-8")


def read_sections(path: Path) -> dict[str, str]:
    """Return the texts of a file by name."""
    parts = f"\n{path.read_text(encoding='utf-8')}".split(f"\n{MARK}")[1:]
    return {name: text.removesuffix("\n") for name, _, text in (part.partition("\n") for part in parts)}
