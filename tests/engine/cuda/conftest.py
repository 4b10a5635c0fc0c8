"""A stand-in for the driver, which the engine ``cuda`` finds."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from cgraph.engine.cuda import engine as engine_module
from cgraph.engine.cuda import gpu as gpu_module
from cgraph.engine.cuda.driver import open_driver
from tests.support.libcuda import StandIn

Library = TypeVar("Library")


@pytest.fixture
def library(monkeypatch):
    """A stand-in that the engine ``cuda`` finds."""
    with driver_of(StandIn(), monkeypatch) as library:
        yield library


@contextmanager
def driver_of(library: Library, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """Let the engine ``cuda`` find a stand-in for the driver's library; forget its devices afterwards."""
    forget()
    monkeypatch.setattr(gpu_module, "driver", lambda: open_driver(library))
    yield library
    gc.collect()
    forget()


def forget() -> None:
    engine_module.open_device.cache_clear()
    engine_module.cells_of.cache_clear()
