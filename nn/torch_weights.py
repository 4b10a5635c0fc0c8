"""Weights from PyTorch files, by the names of PyTorch's modules."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

import numpy as np

import cgraph as cg
from cgraph import FormatError
from nn.layer import Layer
from nn.torch_names import TorchNames
from nn.weights import read_arrays, set_values

L = TypeVar("L", bound=Layer)
Rename = Mapping[str, str | None] | Callable[[str], str | None]


def load_torch(model: L, path: str | Path, rename: Rename | None = None) -> L:
    """Assign every Parameter from the weights of a PyTorch module, and return the model.

    A layer at ``blocks.0`` reads the arrays of the module ``blocks.0`` by the names and in the layouts of PyTorch:
    a Linear ``weight`` transposed, a BatchNorm ``running_mean``, an LSTM ``weight_ih_l0`` and both its biases.

    Parameters
        path: a file of ``torch.save(module.state_dict(), path)``, or a ``.safetensors`` file of the same names
        rename: maps names in the file to names here. In a mapping the longest key applies that is the name or a prefix
            up to a dot (``{"layer1": "groups.0", "fc": "classifier"}``; the key ``""`` is a prefix of all); or a
            function. Arrays renamed to None are ignored
    Raises
        FormatError: no such file; a Parameter has no array in it, or one of another shape; an array is unused
    """
    read = read_arrays(path) if Path(path).suffix == ".safetensors" else cg.formats.torch_file.read_torch(path)
    arrays = rename_arrays(read, rename, str(path))
    names = TorchNames(arrays)
    try:
        by_path = model.from_torch(names)
    except KeyError as error:
        raise FormatError(
            f"{path} has no {error.args[0]}{nearest(error.args[0], arrays)}. Map its name with rename=."
        ) from None
    if left := sorted(arrays.keys() - names.read):
        raise FormatError(
            f"{path}: no layer reads {', '.join(left[:3])}{' …' if len(left) > 3 else ''}. Map these names with "
            "rename=, to None to ignore them."
        )
    set_values(model, {path: by_path[path] for path in model.variables()}, str(path))
    return model


def rename_arrays(arrays: Mapping[str, np.ndarray], rename: Rename | None, source: str) -> dict[str, np.ndarray]:
    """Return arrays by their names here, without the counters of batches."""
    change = rename if callable(rename) else lambda name: by_prefix(name, rename or {})
    by_name: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        here = None if name.endswith("num_batches_tracked") else change(name)
        if here in by_name:
            raise FormatError(
                f"{source}: {name} is the second array that rename= maps to {here}. Map it to another name, or to None."
            )
        if here is not None:
            by_name[here] = array
    return by_name


def by_prefix(name: str, rename: Mapping[str, str | None]) -> str | None:
    """Return `name` with its longest prefix in `rename` replaced; None if that maps to None."""
    parts = name.split(".")
    for count in range(len(parts), -1, -1):
        key = ".".join(parts[:count])
        if key in rename:
            target = rename[key]
            return None if target is None else ".".join(x for x in (target, *parts[count:]) if x)
    return name


def nearest(name: str, arrays: Mapping[str, np.ndarray]) -> str:
    """Return a text with the names in a file that are most similar to a missing one."""
    close = get_close_matches(name, arrays, 2, 0.5) or list(arrays)[:2]
    return f"; it has {' and '.join(close)}" if close else ""
