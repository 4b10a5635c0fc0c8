"""What a user's type checker says: nothing of a script that is right, the line of every name that is not there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.generate import STUB
from docs.stub import stub

ROOT = Path(__file__).parents[2]
README = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]

RIGHT = """
import numpy as np
import cgraph as cg
import nn

x, w = cg.Var((2, 3), name="x"), cg.Var((3, 4), name="w")
y = cg.sin(x) @ w + 1
loss = cg.mean(cg.square(y))
step = cg.compile([loss, y], x, updates={w: w - 0.1 * cg.gradient(loss, w)}, budget="2MiB", threads=2)
np.asarray(cg.load("folder")(np.ones((2, 3))))
reveal_type(cg.sin(x))  # Node
reveal_type(2 * y > x)  # Node
reveal_type(x == 1)  # Node
reveal_type(cg.top_k(x, 2))  # tuple[Node, Node]
reveal_type(cg.gradient(loss, [x, w]))  # list[Node]
reveal_type(step)  # Function
try:
    cg.formats.onnx.read_onnx("model.onnx")
except cg.ShapeError as error:
    print(error, cg.__version__)
"""

WRONG = """
import cgraph as cg
x = cg.Var((2, 3))
cg.sinn(x)  # wrong
cg.sin(x, x)  # wrong
cg.conv2d(x, x, strides=2)  # wrong
x = cg.Varr  # wrong
"""

NUMPY = """
import numpy as np
import cgraph as cg
x = cg.Var((2, 3))
reveal_type(np.sin(x))  # Node
reveal_type(np.where(x > 0, x, 1))  # Node
reveal_type(np.mean(x, axis=0))  # Node
reveal_type(np.ones(3) * x)  # Node
reveal_type(np.negative(np.sin(x) @ np.ones((3, 3))))  # Node
cg.compile([np.sin(x), cg.sin(x)], x)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where one script after another is checked, with one cache."""
    return tmp_path_factory.mktemp("script")


def said(script: str, folder: Path, plugins: str = "") -> list[tuple[int, str, str]]:
    """What mypy says of a user's script: line, ``error`` or ``note``, and text with types by their last names."""
    (folder / "script.py").write_text(script)
    (folder / "mypy.ini").write_text(f"[mypy]\nstrict = true\nfollow_imports = silent\n{plugins}")
    paths = {"MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(folder / "cache"), "script.py"]
    done = subprocess.run(command, cwd=folder, env=os.environ | paths, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1) and not done.stderr, done.stdout + done.stderr
    found = re.findall(r"^script\.py:(\d+): (error|note): (.*)$", done.stdout, re.MULTILINE)
    return [(int(line), kind, re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", text)) for line, kind, text in found]


def promised(script: str) -> list[tuple[int, str, str]]:
    """What the comments of a script say that mypy reveals."""
    lines = enumerate(script.splitlines(), 1)
    types = [(i, line.partition("  # ")[2]) for i, line in lines if line.startswith("reveal_type")]
    return [(i, "note", f'Revealed type is "{text}"') for i, text in types]


def test_the_stub_is_what_is_generated():
    assert STUB.read_text() == stub(), "python -m docs.generate writes it"


@pytest.mark.slow
def test_a_script_that_is_right_has_the_types_that_it_says_and_no_error(folder):
    assert said(RIGHT, folder) == promised(RIGHT)


@pytest.mark.slow
def test_names_and_arguments_that_are_not_there_are_errors(folder):
    wrong = [i for i, line in enumerate(WRONG.splitlines(), 1) if line.endswith("# wrong")]
    assert sorted({line for line, kind, _ in said(WRONG, folder) if kind == "error"}) == wrong


@pytest.mark.slow
def test_numpy_gives_nodes_under_the_plugin(folder):
    assert said(NUMPY, folder, "plugins = cgraph.mypy_plugin\n") == promised(NUMPY)


@pytest.mark.slow
@pytest.mark.parametrize("plugins", ["", "plugins = cgraph.mypy_plugin\n"])
def test_the_script_of_the_readme_has_no_error(folder, plugins):
    assert said(README, folder, plugins) == []
