"""Inputs from the command line: array files, pictures and sounds."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np

from cgraph.cli.pictures import PICTURES, Look, read_picture
from cgraph.cli.sounds import SOUNDS, read_sound
from cgraph.errors import FormatError
from cgraph.formats.npz import read_npy, read_npz
from cgraph.storage.cell import Variable


def read_inputs(
    texts: Sequence[str], inputs: Sequence[Variable], look: Look, values: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return an array for every input.

    Parameters
        texts: ``FILE``, in the model's order, or ``NAME=FILE``; a .npz file gives several by name
        look: conversion of pictures to numbers
        values: values of inputs that need no file
    Raises
        FormatError: a file is not an array or picture; an input is missing, unknown or given twice
    """
    arrays = dict(values)
    for text in texts:
        for name, array in arrays_of(text, inputs, arrays, look).items():
            if name in arrays:
                raise FormatError(f"input {name!r} is given twice. Leave out one --input")
            arrays[name] = array
    missing = [f"{x.name} {x.spec}" for x in inputs if x.name not in arrays]
    if missing:
        raise FormatError(f"no value for {', '.join(missing)}. Add --input NAME=FILE")
    return arrays


def arrays_of(
    text: str, inputs: Sequence[Variable], earlier: dict[str, np.ndarray], look: Look
) -> dict[str, np.ndarray]:
    """Return the arrays of one ``--input``, by input name."""
    by_name = {x.name: x for x in inputs}
    check_name(text, by_name)
    name, equals, file = text.partition("=")
    if equals and name in by_name:
        x: Variable | None = by_name[name]
    else:
        x, file = next((v for v in inputs if v.name not in earlier), None), text
    path = Path(file)
    if path.suffix.lower() == ".npz":
        arrays = read_npz(path)
        unknown = [key for key in arrays if key not in by_name]
        if unknown:
            raise FormatError(
                f"{path}: {unknown[0]!r} is not an input; the inputs are {', '.join(by_name)}. Rename the array"
            )
        return arrays
    if x is None:
        raise FormatError(f"{file}: the model takes {len(inputs)} inputs, more are given. Leave out some --input")
    if path.suffix.lower() in PICTURES:
        return {x.name: read_picture(path, x, look)}
    if path.suffix.lower() in SOUNDS:
        return {x.name: read_sound(path, x)}
    return {x.name: read_array(path, x)}


def check_name(text: str, names: Collection[str]) -> None:
    """Raise FormatError if ``NAME=FILE`` names neither an input nor a file."""
    name, equals, _ = text.partition("=")
    if equals and name not in names and not Path(text).exists():
        raise FormatError(f"the model has no input {name!r}. Use one of {', '.join(names)}")


def read_array(path: Path, x: Variable) -> np.ndarray:
    """Read a .npy file. A dtype of the same kind is converted; the shape must fit."""
    array = read_npy(path)
    return np.asarray(array, x.spec.dtype) if np.can_cast(array.dtype, x.spec.dtype, "same_kind") else np.asarray(array)
