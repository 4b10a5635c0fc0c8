"""A pytest plugin that records the lines of some files that each test runs, and the test's time.

Times are processor times. It records the first CALLS calls of each function in each test, in the main thread, but not
compiled functions (numba), other processes, and tests that trace by themselves.
"""

import sys
import time
from collections import Counter
from collections.abc import Iterator
from inspect import CO_OPTIMIZED  # flags of functions; not of modules and classes, which run once, on import
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

CALLS = 100  # later calls of a function mostly repeat its first ones, and recording takes time

Place = tuple[str, int]  # a file as requested, a line
Reached = dict[str, tuple[float, frozenset[Place]]]  # test → seconds, places


class Reach:
    """The record of the lines that each test runs. Changes while tests run."""

    def __init__(self, tree: Path, files: list[str]):
        self.names = {str(tree / file): file for file in files}
        self.reached: Reached = {}
        self.failed: set[str] = set()
        self.places: set[Place] = set()
        self.calls: Counter[CodeType] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.places, self.calls = set(), Counter()
        started = time.process_time()
        sys.settrace(self.called)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            self.reached[item.nodeid] = time.process_time() - started, frozenset(self.places)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)

    def called(self, frame: FrameType, event: str, value: Any) -> Any:
        name = self.names.get(frame.f_code.co_filename)
        if name is None or not frame.f_code.co_flags & CO_OPTIMIZED or self.calls[frame.f_code] == CALLS:
            return None
        self.calls[frame.f_code] += 1
        places = self.places

        def line(frame: FrameType, event: str, value: Any) -> Any:
            places.add((name, frame.f_lineno))
            return line

        return line
