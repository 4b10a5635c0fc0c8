"""What a user's type checker says: nothing of a script that is right, the line of every name that is not there."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import cgraph
from docs.stub import stubs
from tests.packaging.scripts import NUMPY, README, RIGHT, ROOT, STANDARD, WRONG, every_name, types_of, wrong_lines
from tests.support.patience import PATIENCE

Said = list[tuple[int, str, str]]
"""Line, ``error`` or ``note``, and text with types by their last names."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where one script after another is checked, with one cache."""
    return tmp_path_factory.mktemp("script")


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess:
    """A program of Python's on a user's folder, from which our packages are found."""
    paths = {"MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT), "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    command = [sys.executable, "-m", *command]
    return subprocess.run(command, cwd=folder, env=os.environ | paths, capture_output=True, text=True, timeout=PATIENCE)


def mypy(script: str, folder: Path, plugins: str = "") -> Said:
    """What mypy says of a user's script."""
    (folder / "script.py").write_text(script)
    (folder / "mypy.ini").write_text(f"[mypy]\nstrict = true\nfollow_imports = silent\n{plugins}")
    done = run(["mypy", "--cache-dir", str(folder / "cache"), "script.py"], folder)
    assert done.returncode in (0, 1) and not done.stderr, done.stdout + done.stderr
    found = re.findall(r"^script\.py:(\d+): (error|note): (.*)$", done.stdout, re.MULTILINE)
    return [(int(line), kind, re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", text)) for line, kind, text in found]


def pyright(script: str, folder: Path) -> Said:
    """What pyright says of a user's script. Skips where it is not installed or has no Node.js to run on."""
    if find_spec("pyright") is None:
        pytest.skip("the package pyright is not installed")
    version = run(["pyright", "--version"], folder)
    if version.returncode:
        pytest.skip(f"pyright does not run, perhaps for want of Node.js: {version.stderr[-200:]}")
    (folder / "script.py").write_text(script)
    done = run(["pyright", "--outputjson", "--pythonpath", sys.executable, "script.py"], folder)
    found = json.loads(done.stdout)["generalDiagnostics"]
    kinds = {"error": "error", "warning": "error", "information": "note"}
    return [(x["range"]["start"]["line"] + 1, kinds[x["severity"]], x["message"]) for x in found]


def errors(said: Said) -> list[int]:
    return sorted({line for line, kind, _ in said if kind == "error"})


def notes(said: Said) -> list[tuple[int, str]]:
    """The types that were revealed, by line."""
    revealed = [(line, re.match(r'(?:Revealed type is|Type of ".*" is) "(.*)"$', text)) for line, _, text in said]
    return [(line, found[1]) for line, found in revealed if found]


def test_the_stubs_are_what_is_generated():
    for path, text in stubs().items():
        assert path.read_text() == text, "python -m docs.generate writes it"


@pytest.mark.slow
@pytest.mark.parametrize("checker", [mypy, pyright])
@pytest.mark.parametrize("script", [RIGHT, WRONG, STANDARD, README], ids=["right", "wrong", "standard", "readme"])
def test_a_script_has_the_types_and_the_errors_that_it_says(folder, checker, script):
    said = checker(script, folder)
    assert errors(said) == wrong_lines(script)
    assert notes(said) == types_of(script)


@pytest.mark.slow
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_every_public_name_is_known(folder, checker):
    script = every_name()
    assert script.count("\n") > 900
    assert checker(script, folder) == []


@pytest.mark.slow
def test_numpy_gives_nodes_under_the_plugin_for_mypy(folder):
    said = mypy(NUMPY, folder, "plugins = cgraph.mypy_plugin\n")
    assert errors(said) == [] and notes(said) == types_of(NUMPY)
    assert errors(mypy(README, folder, "plugins = cgraph.mypy_plugin\n")) == []


@pytest.mark.slow
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_numpys_functions_are_no_error_where_nobody_says_that_they_give_nodes(folder, checker):
    assert errors(checker(NUMPY, folder)) == []


@pytest.mark.slow
def test_stubtest_finds_every_public_name_with_its_parameters(tmp_path):
    """The stub as that of a module of its own: what it imports is checked where it is defined."""
    (text,) = (text for path, text in stubs().items() if path.parent == Path(cgraph.__file__).parent)
    (tmp_path / "face.pyi").write_text(f"{text}\n__all__ = {cgraph.__all__!r}\n")
    (tmp_path / "face.py").write_text("import cgraph\nimport nn\nfrom cgraph import *\n__all__ = cgraph.__all__\n")
    (tmp_path / "mypy.ini").write_text("[mypy]\nfollow_imports = skip\n")
    done = run(["mypy.stubtest", "face", "--mypy-config-file", "mypy.ini"], tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
