"""SciPy and scikit-learn compute with our arrays what they compute with NumPy's."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("sklearn") is None, reason="scikit-learn is not installed")
def test_scipy_and_scikit_learn_give_the_same():
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"SCIPY_ARRAY_API": "1", "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", "tests.array_api.others"]
    run = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert run.returncode == 0, run.stderr[-3000:]
