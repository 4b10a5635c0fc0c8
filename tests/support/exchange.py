"""Paths that somebody else exchanges while they are opened."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def exchanged_before_call(
    monkeypatch: pytest.MonkeyPatch, functions: Sequence[str], at: int, root: Path, part: str
) -> Iterator[list[str]]:
    """Replace `part` of a path below `root` by a link into ``root / "evil"`` before call `at` of these functions of os.

    Yields the list of the functions' calls.
    """
    calls: list[str] = []

    def counted(name: str) -> Callable:
        original = getattr(os, name)

        def call(*args, **kwargs):
            calls.append(name)
            if len(calls) == at + 1:
                (root / part).rename(root / "moved")
                (root / part).symlink_to(root / "evil" / "/".join(part.split("/")[1:]))
            return original(*args, **kwargs)

        return call

    with monkeypatch.context() as patch:
        for name in functions:
            patch.setattr(os, name, counted(name))
        yield calls
