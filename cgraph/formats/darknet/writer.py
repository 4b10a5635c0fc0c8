"""write_weights: write parameters of a Darknet network as a ``.weights`` file."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from cgraph.errors import ShapeError
from cgraph.formats.darknet.parameters import FreeParameters, random_array
from cgraph.formats.darknet.reader import read
from cgraph.ops.leaf import Var
from cgraph.system.files import replace_file

HEADER = np.array([0, 2, 0, 0, 0], "<i4").tobytes()  # version 0.2.0, 0 images in training


def write_weights(
    path: str | Path, config: str | Path, values: Mapping[str, np.ndarray] | None = None, *, seed: int = 0
) -> None:
    """Write a file that `load` and Darknet read, in one atomic step, with one array in memory at a time.

    Parameters
        path: the ``.weights`` file
        config: the ``.cfg`` file, which defines the order
        values: arrays by name, such as ``"0.convolutional.filters"``, as the inputs of `load` without weights
        seed: source of parameters without a value, as in `load`
    Raises
        FormatError: the description is malformed
        ShapeError: the shape of an array differs from that of its parameter
    """
    parameters = FreeParameters()
    read(config, lambda _: parameters, 1)
    replace_file(path, contents(parameters.requests, values or {}, seed))


def contents(
    parameters: list[tuple[Var, float | None]], values: Mapping[str, np.ndarray], seed: int
) -> Iterator[bytes]:
    generator = np.random.default_rng(seed)
    yield HEADER
    for var, start in parameters:
        value = values[var.name] if var.name in values else random_array(generator, var.shape, start)
        if value.shape != var.shape:
            raise ShapeError(f"{var.name} has the shape {list(value.shape)}; give an array of shape {list(var.shape)}")
        yield value.astype("<f4").tobytes()
