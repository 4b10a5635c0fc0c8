"""What pyproject.toml asks for is what the code imports."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MODULES = {
    "pillow": "PIL",
    "protobuf": "google",
    "scikit-learn": "sklearn",
    "imageio-ffmpeg": "imageio_ffmpeg",
    "tensorboardx": "tensorboardX",
    "google-re2": "re2",
}
FOR_US = ("dev", "bench", "zoo")  # what tests and benchmarks compare with
FOR_USERS = {extra: rows for extra, rows in PROJECT["optional-dependencies"].items() if extra not in FOR_US}


@cache
def imported(folder: str) -> frozenset[str]:
    """The packages that the files of a folder import, at whatever place."""
    found = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add((node.module or "").partition(".")[0])
    return frozenset(found)


def module_of(requirement: str) -> str:
    name = re.match(r"[\w-]+", requirement)[0].lower()
    return MODULES.get(name, name)


def test_every_package_that_is_installed_is_imported():
    assert {module_of(row) for row in PROJECT["dependencies"]} <= imported("cgraph") | imported("nn")


@pytest.mark.parametrize("extra", FOR_USERS)
def test_every_extra_has_code(extra):
    examples = imported("examples") if extra == "examples" else frozenset()
    assert {module_of(row) for row in FOR_USERS[extra]} <= imported("cgraph") | imported("nn") | examples
