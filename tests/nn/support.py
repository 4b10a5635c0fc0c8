"""Run layers on the reference engine, where an op is its NumPy line."""

from typing import Any

import numpy as np

import cgraph as cg
from nn.layer import Layer, initialise
from nn.mode import Mode
from tests.support.tolerance import assert_near


def run(layer: Layer, *arrays: np.ndarray, mode: Mode | None = None, seed: int = 0) -> Any:
    """The layer's result on these arrays: an array or a tuple of them."""
    initialise(layer, seed)
    inputs = [cg.Var(x.shape, x.dtype, f"x{i}") for i, x in enumerate(arrays)]
    result = layer(*inputs, mode=mode)
    single = not isinstance(result, tuple)
    updates = mode.updates if mode is not None else {}
    function = cg.compile([result] if single else list(result), inputs, updates=updates, engine="reference")
    found = function(*arrays)
    return found[0] if single else tuple(found)


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def value(x: cg.Var) -> np.ndarray:
    """What a Parameter holds, in float64."""
    return x.value.astype(np.float64)


def assert_close(got: np.ndarray, want: np.ndarray, name: str = "float32") -> None:
    """A layer's result, float32 or float64, within the tolerance of this name."""
    assert_near(got, want, name)
