"""Each block of code that a page shows runs as the only code of a file, in an empty folder.

Two pages are not here: `docs/add_a_kernel.md` shows excerpts of the code itself (`test_add_a_kernel.py`), and
`docs/cuda.md` needs a GPU.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
ELSEWHERE = {"add_a_kernel", "cuda"}
SLOW = {"dist", "nn", "sequences"}
NEEDS = {"dist": ("dask", "distributed"), "nn": ("matplotlib",)}  # packages beside those of all pages
PAGES = {"README": ROOT / "README.md"} | {path.stem: path for path in sorted((ROOT / "docs").glob("*.md"))}


def blocks():
    for name, path in PAGES.items():
        text = path.read_text()
        for block in BLOCK.finditer(text) if name not in ELSEWHERE else ():
            line = text[: block.start(1)].count("\n")
            yield pytest.param(path, line, id=f"{name}-{line}", marks=[pytest.mark.slow] * (name in SLOW))


def test_pages_with_code_that_does_not_run_here_are_few():
    assert {name for name in ELSEWHERE if BLOCK.search(PAGES[name].read_text())} == ELSEWHERE


@pytest.mark.parametrize(("path", "line"), [*blocks()])
def test_a_block_runs_in_an_empty_file(path, line, tmp_path, monkeypatch):
    for package in ("onnx", *NEEDS.get(path.stem, ())):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    text = path.read_text()
    block = next(x for x in BLOCK.finditer(text) if text[: x.start(1)].count("\n") == line)
    exec(compile("\n" * line + block[1], path, "exec"), {"__name__": "__main__"})
