"""The notebook runs from beginning to end, and every cell shows what the one in the repository shows."""

import json
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE

ROOT = Path(__file__).parents[2]
nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")


def shown(cells):
    """The kinds of what each cell shows."""
    return [[sorted(x.get("data", {x["output_type"]: ""})) for x in cell.get("outputs", ())] for cell in cells]


@pytest.mark.slow
def test_the_tour_runs_and_shows_itself(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    path = ROOT / "examples" / "tour.ipynb"
    notebook = nbformat.read(path, as_version=4)
    kept = shown(json.loads(path.read_text())["cells"])
    nbclient.NotebookClient(notebook, timeout=PATIENCE, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert shown(notebook.cells) == kept
    kinds = {kind for cell in kept for output in cell for kind in output}
    assert kinds >= {"image/svg+xml", "text/html", "image/png", "stream"}
