"""The public conformance suite of the standard, on a copy, with few examples a test.

All of it: ``ARRAY_API_TESTS_MODULE=cgraph.array_api python -m pytest array_api_tests`` in a copy of the suite.
"""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE

SUITE = Path(__file__).parents[3] / "shared" / "suites" / "array-api-tests"
NEEDED = ("pytest_jsonreport", "ndindex")
PASSED = 1366  # NumPy itself passes 1,321 of 1,380
SKIPPED = {"requires ARRAY_API_TESTS_VERSION >= 2025.12": 9, "flaky": 5}
"""How many tests the suite itself leaves out, by its reasons: nothing is left out for what is missing here."""


@pytest.mark.slow
@pytest.mark.skipif(not SUITE.exists(), reason="the suite is not there: ../shared/suites/array-api-tests")
@pytest.mark.skipif(not all(map(find_spec, NEEDED)), reason="the suite needs pytest-json-report and ndindex")
def test_the_public_suite_passes(tmp_path):
    copy = tmp_path / "suite"
    shutil.copytree(SUITE, copy, copy_function=shutil.copyfile)
    for folder in (copy, *(p for p in copy.rglob("*") if p.is_dir())):
        folder.chmod(0o755)
    (copy / "array-api" / "spec" / "2024.12" / "API_specification").mkdir(parents=True, exist_ok=True)
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"ARRAY_API_TESTS_MODULE": "cgraph.array_api", "PYTHONPATH": os.pathsep.join(paths)}
    few = [
        "--max-examples=2",
        "--hypothesis-seed=0",
        "--disable-deadline",
        "-q",
        "-rs",
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore",
    ]
    command = [sys.executable, "-m", "pytest", "array_api_tests", "--tb=line", *few]
    run = subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    counts = {
        kind: int(n) for n, kind in re.findall(r"(\d+) (passed|failed|errors?|xfailed)", run.stdout.splitlines()[-1])
    }
    skipped: Counter[str] = Counter()
    for n, reason in re.findall(r"^SKIPPED \[(\d+)\] \S+: (.*)$", run.stdout, re.MULTILINE):
        skipped[reason] += int(n)
    assert counts == {"passed": PASSED} and skipped == SKIPPED, run.stdout[-3000:]
