"""Every example runs as a newcomer would run it, and is short."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NEEDS_DATA = {"squeezenet.py", "blazeface.py", "yolox.py", "classify.py", "mask_rcnn_train.py"}


BRIEFLY = {"gpt.py": ["--steps", "2"]}


@pytest.mark.slow
@pytest.mark.parametrize("path", [p for p in EXAMPLES if p.name not in NEEDS_DATA], ids=lambda p: p.name)
def test_an_example_runs(path, tmp_path):
    command = [sys.executable, path, *BRIEFLY.get(path.name, [])]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_an_example_is_short(path):
    assert len(path.read_text().splitlines()) < 80
