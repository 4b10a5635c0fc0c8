"""A saved function with two cells, for the tests of loading and of the function itself."""

from pathlib import Path

import pytest

from tests.support.saved import running_sum


@pytest.fixture
def saved(tmp_path) -> Path:
    f = running_sum()
    f.cells[1].assign(4.0)
    f.save(tmp_path / "saved")
    return tmp_path / "saved"
