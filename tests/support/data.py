"""Files that live beside the project, never in it: tests that need one skip, and say so, when it is absent."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


def shared(path: str) -> Path:
    """The file or folder `path` of the shared data, or skip the test."""
    found = SHARED / path
    if not found.exists():
        pytest.skip(f"shared data {path} is not here")
    return found
