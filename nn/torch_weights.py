"""Weights that PyTorch wrote, by the names that its modules have."""

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
    """Give every Parameter its value from the weights of a PyTorch module.

    A layer at ``blocks.0`` reads the arrays of the module ``blocks.0`` as its kind names and turns them in PyTorch:
    a Linear ``weight`` transposed, a BatchNorm ``running_mean``, an LSTM ``weight_ih_l0`` and both its biases.

    Parameters
        path: what ``torch.save(module.state_dict(), path)`` wrote, or a ``.safetensors`` file of the same names
        rename: what a name in the file is here. Of a mapping the longest key counts that is the name or stands before a
            dot in it (``{"layer1": "groups.0", "fc": "classifier"}``; the key ``""`` stands before all); or a function.
            What becomes None is left out
    Raises
        FormatError: no such file; a Parameter finds no array in it, or one of another shape; an array is left over
    """
    read = read_arrays(path) if Path(path).suffix == ".safetensors" else cg.formats.torch_file.read_torch(path)
    arrays = rename_arrays(read, rename, str(path))
    names = TorchNames(arrays)
    try:
        by_path = model.from_torch(names)
    except KeyError as error:
        raise FormatError(f"{path} has no {error.args[0]}{nearest(error.args[0], arrays)}") from None
    if left := sorted(arrays.keys() - names.read):
        raise FormatError(
            f"{path}: nothing here reads {', '.join(left[:3])}{' …' if len(left) > 3 else ''}; see rename"
        )
    set_values(model, {path: by_path[path] for path in model.variables()}, str(path))
    return model


def rename_arrays(arrays: Mapping[str, np.ndarray], rename: Rename | None, source: str) -> dict[str, np.ndarray]:
    """Arrays by the names that they have here, without those that only count batches."""
    change = rename if callable(rename) else lambda name: by_prefix(name, rename or {})
    by_name: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        here = None if name.endswith("num_batches_tracked") else change(name)
        if here in by_name:
            raise FormatError(f"{source}: {name} is the second array that becomes {here}")
        if here is not None:
            by_name[here] = array
    return by_name


def by_prefix(name: str, rename: Mapping[str, str | None]) -> str | None:
    """`name` with the longest key before it replaced."""
    parts = name.split(".")
    for count in range(len(parts), -1, -1):
        key = ".".join(parts[:count])
        if key in rename:
            target = rename[key]
            return None if target is None else ".".join(x for x in (target, *parts[count:]) if x)
    return name


def nearest(name: str, arrays: Mapping[str, np.ndarray]) -> str:
    """The names in a file that are most like one that is not there."""
    close = get_close_matches(name, arrays, 2, 0.5) or list(arrays)[:2]
    return f"; it has {' and '.join(close)}" if close else ""
