"""No module needs what macOS or Windows lacks, and only `cgraph.system` asks which system it runs on."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sources import sources_with

ROOT = Path(__file__).parents[2]
SYSTEMS = {"sys.platform", "os.name", "platform.system", "platform.platform", "os.uname"}
LAST = {name.rpartition(".")[2] for name in SYSTEMS}
POSIX = {"fcntl", "grp", "pwd", "resource", "termios"}


def may_ask(node: ast.AST) -> bool:
    """An attribute with the last name of a question, or a call of `hasattr`: only these are written out."""
    if isinstance(node, ast.Attribute):
        return node.attr in LAST
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "hasattr"


def questions(tree: ast.AST) -> list[int]:
    """The lines that ask for the system, that ask what `os` or `mmap` have, or that import a module of POSIX."""
    lines = []
    for node in ast.walk(tree):
        text = ast.unparse(node) if may_ask(node) else ""
        if text in SYSTEMS or text.startswith(("hasattr(os,", "hasattr(mmap,", "hasattr(signal,")):
            lines.append(node.lineno)
        if isinstance(node, ast.Import) and POSIX & {alias.name for alias in node.names}:
            lines.append(node.lineno)
        if isinstance(node, ast.ImportFrom) and node.module in POSIX:
            lines.append(node.lineno)
    return lines


def test_only_the_package_of_the_system_asks_which_system_it_is():
    found = sources_with({*SYSTEMS, "hasattr", *POSIX})
    others = [(path, tree) for path, tree in found if not path.startswith("cgraph/system/")]
    assert not [f"{path}:{line}" for path, tree in others for line in questions(tree)]


@pytest.mark.parametrize(
    "line",
    [
        "x = sys.platform == 'linux'",
        "if os.name == 'nt': pass",
        "x = hasattr(os, 'fork')",
        "import fcntl",
        "from resource import getrlimit",
        "x = platform.system()",
    ],
)
def test_the_search_finds_each_form_of_the_question(line):
    assert set(questions(ast.parse(line))) == {1}


def test_every_module_is_imported_and_a_function_runs_without_what_windows_lacks():
    """In a process of its own, since it removes modules, functions and constants."""
    process = subprocess.run(
        [sys.executable, "-m", "tests.support.without_posix"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert process.returncode == 0, process.stderr
    facts = ast.literal_eval(process.stdout)
    assert facts.pop("modules") == len([*(ROOT / "cgraph").rglob("*.py"), *(ROOT / "nn").rglob("*.py")])
    assert facts.pop("files") > 0
    assert facts.pop("refusal").startswith("win32 has no pread, by which runs read weights from a file. Compile")
    assert facts == {"same": True, "cores": 3, "nbytes": 1 << 33, "inside": True}


@pytest.mark.slow
@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_types_fit_on_every_system(system, tmp_path):
    command = [sys.executable, "-m", "mypy", "--platform", system, "--cache-dir", os.fspath(tmp_path)]
    process = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert process.returncode == 0, process.stdout
