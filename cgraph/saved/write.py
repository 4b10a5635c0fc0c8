"""save: a compiled Function as plain data in a folder, without pickled objects."""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cgraph.dtypes.convert import code_of
from cgraph.errors import FormatError
from cgraph.ir.labels import distinct_names
from cgraph.running.runner import Runner
from cgraph.saved.entry import compiled_entry, target_of
from cgraph.saved.function import SavedFunction
from cgraph.saved.layout import (
    FORMAT,
    GRAPH,
    MANIFEST,
    STATE,
    VERSION,
    with_sum,
)
from cgraph.saved.pieces import Pieces
from cgraph.saved.read import unpickle
from cgraph.saved.trimmed import trims_entry
from cgraph.storage.cell import Variable
from cgraph.system.files import new_folder
from cgraph.system.folders import set_mode
from cgraph.system.machine import system_name
from cgraph.version import __version__

FILES = {".h5", ".keras", ".npz", ".onnx", ".pt", ".pth", ".safetensors", ".tflite"}  # suffixes of files


def save(
    functions: Sequence[Runner], folder: str | os.PathLike, graph: bytes | None = None, names: Sequence[str] = ()
) -> None:
    """Write a function as a folder, completely or not at all.

    Parameters
        functions: the same function, compiled by the CPU engine for each target
        folder: a path where nothing exists yet
        graph: the text of an ONNX file, for other versions and processors
        names: names of the outputs, the function's own by default; repeated ones are changed, as ``y_1``
    Raises
        FormatError: `folder` exists, or has the name of a file, such as ``model.onnx``; a step is a Python function, or
            its code is of another engine
    """
    path = Path(folder)
    if path.suffix.lower() in FILES:
        raise FormatError(
            f"{path} is the name of a file, and save writes a folder. Leave {path.suffix} out; cg.formats.onnx.save "
            "writes nodes as an ONNX file"
        )
    if os.path.lexists(path):
        raise FormatError(
            f"{path} exists already. A function is saved in a new folder: choose another name, or remove it"
        )
    if names and len(names) != len(functions[0].names):
        raise FormatError(f"{len(names)} names for {len(functions[0].names)} outputs. Give one for each")
    if graph is not None and trims_entry(functions[0]) is not None:
        raise FormatError(
            "a graph has no lengths and no strings, so it would be another function. Save it without graph="
        )
    files = files_of(functions, distinct_names(names) or functions[0].names, graph)
    with new_folder(path) as new:
        for name, parts in files.items():
            write_file(new / name, parts)


def write_file(path: Path, parts: Iterable[Any]) -> None:
    with path.open("xb") as file:
        set_mode(file.fileno(), 0o644)
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())


def bytes_of(functions: Sequence[Runner]) -> dict[str, bytes]:
    """Return each file as bytes, for pickles."""
    return {name: b"".join(map(bytes, parts)) for name, parts in files_of(functions, functions[0].names).items()}


def reduced(function: Runner) -> tuple[Callable[..., Runner], tuple[dict[str, bytes]]]:
    """Return what a pickle of a function holds: the function that loads it, and its files."""
    return unpickle, (bytes_of([function]),)


def files_of(functions: Sequence[Runner], names: Sequence[str], graph: bytes | None = None) -> dict[str, list[Any]]:
    """Return the files of one function compiled for several targets, in pieces, with the cells' values between two
    runs.
    """
    savable = [x.for_saving() for x in functions]
    return functions[0].between_runs(lambda: file_parts(savable, names, graph))


def file_parts(functions: Sequence[Runner], names: Sequence[str], graph: bytes | None) -> dict[str, list[Any]]:
    """Return the files in pieces. The manifest lists all others with their checksums."""
    first = functions[0]
    variables = list(dict.fromkeys((*first.inputs, *first.cells, *first.updated)))
    number_of = {x: i for i, x in enumerate(variables)}
    pieces = {STATE: Pieces()}
    if graph is not None:
        pieces[GRAPH] = Pieces()
        pieces[GRAPH].add(np.frombuffer(graph, np.uint8))
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "cgraph": __version__,
        "system": system_name(),
        "variables": [variable_entry(x, pieces[STATE]) for x in variables],
        "inputs": [number_of[x] for x in first.inputs],
        "cells": [number_of[x] for x in first.cells],
        "updated": [number_of[x] for x in first.updated],
        "outputs": [spec_entry(x) for x in first.outputs],
        "names": list(names),
        "single": first.single,
        "trims": trims_entry(first),
        "targets": targets_of(functions, number_of, pieces),
        "files": {name: [file.nbytes, file.crc] for name, file in pieces.items()},
    }
    return {**{name: file.parts for name, file in pieces.items()}, MANIFEST: [with_sum(json.dumps(manifest))]}


def variable_entry(x: Variable, state: Pieces) -> list[Any]:
    """Return a Var's entry, with the offset of its value in the file of the state; -1 if it has none."""
    array = x.cell.array
    return [x.name, *spec_entry(x), x.where, -1 if array is None else state.add(array.copy())]


def targets_of(
    functions: Sequence[Runner], number_of: Mapping[Any, int], pieces: dict[str, Pieces]
) -> dict[str, dict[str, Any]]:
    """Return the manifest entry of each target, and add its files to `pieces`."""
    first, entries = functions[0], {}
    for function in functions:
        if facts_of(function) != facts_of(first):
            raise FormatError(
                "functions that are saved together have the same Vars and outputs. Compile one graph for each target"
            )
        name, entry = target_entry(function, number_of, pieces)
        if name in entries:
            raise FormatError(f"two functions are for {name}. Compile them for different targets")
        entries[name] = entry
    return entries


def facts_of(function: Runner) -> tuple:
    """Return the facts that all targets must share: Vars, specs of outputs, and what becomes of them."""
    variables = (function.inputs, function.cells, function.updated)
    return *(tuple(map(id, xs)) for xs in variables), tuple(x.spec for x in function.outputs), trims_entry(function)


def target_entry(
    function: Runner, number_of: Mapping[Any, int], pieces: dict[str, Pieces]
) -> tuple[str, dict[str, Any]]:
    """Return the name of a function's target and its manifest entry."""
    if not isinstance(function, SavedFunction):
        target = target_of(function)
        return target.name, compiled_entry(function, target, number_of, pieces)
    parts = function.parts  # those of the loaded file
    for name, raw in parts.files.items():
        if name != STATE:
            pieces[name] = Pieces()
            pieces[name].add(raw)
    return parts.target, parts.entry


def spec_entry(x: Any) -> list[Any]:
    return [code_of(x.spec.dtype), list(x.spec.shape)]
