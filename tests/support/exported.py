"""Runs of exported functions for tests: a test is skipped where a compiler or an emulator is not installed."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks import emulated
from benchmarks.emulated import Run


def or_skip(work: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of some work; skip the test where a program is not installed."""
    try:
        return work(*arguments)
    except emulated.MissingProgram as error:
        pytest.skip(str(error))


def run_export(folder: Path, runs: int = 1) -> Run:
    """Run an export on its check inputs; see `benchmarks.emulated.run_export`."""
    return or_skip(emulated.run_export, folder, runs)


def run_in_order(folder: Path, order: Sequence[int]) -> Run:
    """Make runs of an export of several sizes in an order; see `benchmarks.emulated.run_in_order`."""
    return or_skip(emulated.run_in_order, folder, order)


def require(program: str, packages: str) -> None:
    """Skip the test unless a program is installed."""
    or_skip(emulated.require, program, packages)


call = emulated.call
