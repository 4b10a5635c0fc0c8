"""Weights in safetensors files: arrays by the paths of a model's Parameters."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np
import safetensors.numpy

import cgraph as cg
from cgraph import FormatError, InputError, UnassignedError, Var
from cgraph.storage.cell import assign_all
from cgraph.system.files import replace_file
from nn.checks import check_kind
from nn.layer import Layer, check_model

L = TypeVar("L", bound=Layer)
ADVICE = "Use the weights of the same model, or build the model with the sizes of the file."
OTHERS = {".h5", ".hdf5", ".keras", ".npy", ".npz", ".onnx", ".pt", ".pth", ".tflite"}  # suffixes of other formats


def save_weights(path: str | Path, model: Layer, dtype: str = "float32") -> None:
    """Write every Parameter's value, including running statistics. The file is replaced atomically.

    Parameters
        dtype: dtype of the arrays in the file; ``float16`` takes half the bytes and has 11 significant bits
    Raises
        UnassignedError: a Parameter has no value
        InputError: `model` is not a Layer, or the name of the file is that of another format, such as ``weights.npz``
    """
    check_model(model)
    if Path(path).suffix in OTHERS:
        raise InputError(f"path is {os.fspath(path)!r}. Pass a name that ends in .safetensors, the format of the file.")
    arrays = {name: x.astype(dtype) for name, x in values_of(model).items()}
    replace_file(path, [pack_arrays(arrays)])


def load_weights(path: str | Path, model: L, mapped: bool = False) -> L:
    """Assign every Parameter from a file, and return the model.

    Parameters
        mapped: map the file instead of copying it; it must not change while the model uses it. `nn.compile` reads the
            weights that it packs once, so the memory has one copy of them
    Raises
        FormatError: not a safetensors file, or its names or shapes are not the model's
        InputError: `model` is not a Layer
    """
    check_model(model)
    set_values(model, read_arrays(path), str(path), copy=not mapped)
    return model


def values_of(model: Layer) -> dict[str, np.ndarray]:
    """Return copies of every Parameter's value by path."""
    check_assigned(model)
    return {path: x.value for path, x in model.variables().items()}


def check_assigned(model: Layer) -> None:
    """Raise UnassignedError unless every Parameter has a value."""
    missing = [path for path, x in model.variables().items() if not x.is_assigned]
    if missing:
        raise UnassignedError(
            f"{len(missing)} Parameters have no value, such as {missing[0]}. Call nn.initialise or nn.load_weights."
        )


def set_values(model: Layer, values: Mapping[str, np.ndarray], source: str = "values", copy: bool = True) -> None:
    """Assign every Parameter from `values`, whose names and shapes must be the model's; `copy` as for `Var.assign`.

    All change at once: after an exception, also an interrupt, either all Parameters have new values or none.
    """
    check_model(model)
    check_kind("values", values, Mapping, "a mapping of paths to arrays")
    assign_all(fitting_values(model, values, source), copy)


def fitting_values(model: Layer, values: Mapping[str, np.ndarray], source: str) -> dict[Var, np.ndarray]:
    """Return the value for every Parameter. FormatError unless names and shapes are the model's."""
    variables = model.variables()
    for kind, names in (("lacks", variables.keys() - values.keys()), ("has unknown", values.keys() - variables.keys())):
        if names:
            raise FormatError(
                f"{source} {kind} {', '.join(sorted(names)[:3])}{' …' if len(names) > 3 else ''}. {ADVICE}"
            )
    for path, x in variables.items():
        if values[path].shape != x.shape:
            raise FormatError(
                f"{source}: {path} has shape {list(values[path].shape)}, the model's {list(x.shape)}. {ADVICE}"
            )
    return {x: values[path].astype(x.dtype, copy=False) for path, x in variables.items()}


def pack_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return arrays as the bytes of a safetensors file."""
    return safetensors.numpy.save({name: np.asarray(x, order="C") for name, x in arrays.items()})


def read_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """Return every array of a safetensors file, mapped. FormatError for any other file."""
    return cg.formats.safetensors.read_safetensors(path)
