"""Every benchmark can be started; those of peers that are not installed are named."""

from importlib import import_module
from pathlib import Path

import pytest

NAMES = sorted(p.stem for p in (Path(__file__).parents[2] / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_finds_what_it_imports(name):
    try:
        import_module(f"benchmarks.{name}")
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] in ("cgraph", "nn", "benchmarks"):
            raise
        pytest.skip(f"{error.name} is not installed")
