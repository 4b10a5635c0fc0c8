"""Clusters of examples, docs, benchmarks and tests: dask's dashboard has no password, so nobody else may reach it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ADDRESS = re.compile(r"""dashboard_address["']?\s*[=:]\s*(None|["'][^"']*["'])""")
CLUSTER = re.compile(r"\b(LocalCluster|Scheduler|Nanny|SpecCluster)\(")
LOOPBACK = re.compile(r"""None|["'](127\.0\.0\.1|localhost|\[::1\])(:\d+)?["']""")


def texts() -> list[Path]:
    folders = ("examples", "docs", "benchmarks", "tests", "cgraph", "nn")
    paths = [
        path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md", ".ipynb")
    ]
    return [
        path
        for path in (*paths, ROOT / "README.md")
        if path != Path(__file__) and path.name != "test_child_processes.py"
    ]


def test_dashboards_listen_on_the_loopback_address():
    for path in texts():
        text = path.read_text(encoding="utf-8")
        for found in ADDRESS.finditer(text):
            assert LOOPBACK.fullmatch(found[1]), f"{path}: {found[0]} listens on all addresses"
        assert not CLUSTER.search(text) or ADDRESS.search(text), f"{path}: a dashboard's default address is all of them"


@pytest.mark.parametrize("name", ["docs/dist.md", "examples/train_cluster.py", "tests/dist/clusters.py"])
def test_files_that_start_clusters_name_the_address(name):
    assert ADDRESS.search((ROOT / name).read_text(encoding="utf-8"))
