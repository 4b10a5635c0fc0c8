"""A stand-in for the driver, which the engine ``cuda`` finds."""

import pytest

from cgraph.engine.cuda import engine as engine_module
from cgraph.engine.cuda import gpu as gpu_module
from cgraph.engine.cuda.driver import open_driver
from tests.support.libcuda import StandIn


@pytest.fixture
def library(monkeypatch):
    """A stand-in that the engine ``cuda`` finds."""
    found = StandIn()
    forget()
    monkeypatch.setattr(gpu_module, "driver", lambda: open_driver(found))
    yield found
    forget()


def forget():
    engine_module.open_device.cache_clear()
    engine_module.cells_of.cache_clear()
