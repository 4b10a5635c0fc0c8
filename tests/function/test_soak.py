"""Many mixed calls take no more memory: `benchmarks/soak.py`, with fewer calls than its command makes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE

MOST_GROWTH = 1.0  # MiB
ROOT = Path(__file__).parents[2]


def growth(calls: int, warm_up: int) -> float:
    """MiB of traced memory that calls add after others, in a process of their own."""
    command = [sys.executable, "-m", "benchmarks.soak", "--calls", str(calls), "--warm-up", str(warm_up)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT)
    assert run.returncode == 0, run.stderr[-2000:]
    found = re.search(r"growth after the warm-up: (-?[0-9.]+) MiB traced", run.stdout)
    assert found, run.stdout
    return float(found[1])


def test_each_kind_of_call_runs():
    growth(60, 20)


@pytest.mark.slow
def test_calls_that_never_came_before_take_no_more_memory():
    assert growth(8000, 4000) < MOST_GROWTH
