"""Weights in safetensors files: arrays by the paths of a model's Parameters."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np
import safetensors.numpy

import cgraph as cg
from cgraph import FormatError, UnassignedError, Var
from cgraph.storage.cell import assign_all
from cgraph.system.files import replace_file
from nn.layer import Layer

L = TypeVar("L", bound=Layer)


def save_weights(path: str | Path, model: Layer, dtype: str = "float32") -> None:
    """Write every Parameter's value, running statistics too. The old file stays whole until the new one is.

    Parameters
        dtype: of the arrays in the file; ``float16`` takes half the bytes and keeps 11 bits of every number
    Raises
        UnassignedError: a Parameter has no value
    """
    arrays = {name: x.astype(dtype) for name, x in values_of(model).items()}
    replace_file(path, [pack_arrays(arrays)])


def load_weights(path: str | Path, model: L, mapped: bool = False) -> L:
    """Give every Parameter its value from a file.

    Parameters
        mapped: leave the values in the file, which must then stay as it is, until they are assigned anew. What
            `nn.compile` packs is read once, so that a model takes the memory of its weights once
    Raises
        FormatError: no safetensors file, or its names or shapes are not the model's
    """
    set_values(model, read_arrays(path), str(path), copy=not mapped)
    return model


def values_of(model: Layer) -> dict[str, np.ndarray]:
    """Copies of every Parameter's value by path."""
    check_assigned(model)
    return {path: x.value for path, x in model.variables().items()}


def check_assigned(model: Layer) -> None:
    """UnassignedError unless every Parameter has a value."""
    missing = [path for path, x in model.variables().items() if not x.is_assigned]
    if missing:
        raise UnassignedError(f"{len(missing)} Parameters have no value, {missing[0]} first; see nn.initialise")


def set_values(model: Layer, values: Mapping[str, np.ndarray], source: str = "values", copy: bool = True) -> None:
    """Assign every Parameter from `values`, whose names and shapes must be the model's; `copy` as for `Var.assign`.

    All change at once: an exception, an interrupt too, leaves every Parameter as it was, or all with their new values.
    """
    assign_all(fitting_values(model, values, source), copy)


def fitting_values(model: Layer, values: Mapping[str, np.ndarray], source: str) -> dict[Var, np.ndarray]:
    """What to assign to every Parameter. FormatError unless names and shapes are the model's."""
    variables = model.variables()
    for kind, names in (("lacks", variables.keys() - values.keys()), ("has unknown", values.keys() - variables.keys())):
        if names:
            raise FormatError(f"{source} {kind} {', '.join(sorted(names)[:3])}{' …' if len(names) > 3 else ''}")
    for path, x in variables.items():
        if values[path].shape != x.shape:
            raise FormatError(f"{source}: {path} has shape {list(values[path].shape)}, the model's {list(x.shape)}")
    return {x: values[path].astype(x.dtype, copy=False) for path, x in variables.items()}


def pack_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Arrays as the bytes of a safetensors file."""
    return safetensors.numpy.save({name: np.ascontiguousarray(x) for name, x in arrays.items()})


def read_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """Every array of a safetensors file, where it lies in the mapped file. FormatError when it is none."""
    return cg.formats.safetensors.read_safetensors(path)
