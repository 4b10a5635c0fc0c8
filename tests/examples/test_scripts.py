"""The scripts of NumPy users run with `cg.jit` on their step, and compare themselves with NumPy."""

import runpy
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).resolve().parents[2] / "examples" / "scripts").glob("*.py"))


def test_there_are_twelve_short_scripts():
    assert len(SCRIPTS) == 12
    assert all(len(path.read_text().splitlines()) < 80 for path in SCRIPTS)


@pytest.mark.slow
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_gives_with_jit_what_it_gives_with_numpy(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert "NumPy" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_gives_the_same_with_cgraphs_numpy_in_place_of_numpy(path, tmp_path, capsys):
    text = path.read_text()
    copy = tmp_path / path.name
    copy.write_text(text.replace("import numpy as np", "import cgraph.numpy as np"))
    assert copy.read_text() != text
    runpy.run_path(str(copy), run_name="__main__")
    assert "NumPy" in capsys.readouterr().out
