"""Samples of a model: the files of a folder as the arrays of runs."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from cgraph.cli.arrays import read_inputs
from cgraph.cli.pictures import PICTURES, look_of
from cgraph.errors import FormatError
from cgraph.formats.npz import read_npy, read_npz
from cgraph.storage.cell import Variable

ARRAYS = (".npy", ".npz")
Runs = list[tuple[np.ndarray, ...]]


def runs_of(args: argparse.Namespace, inputs: Sequence[Variable], constants: Mapping[str, np.ndarray]) -> Runs:
    """Return the arrays of each run: a picture is one run, an array one for each batch along its first axis."""
    folder = args.samples
    files = sorted(x for x in folder.rglob("*") if x.is_file()) if folder.is_dir() else [folder]
    files = [x for x in files if x.suffix.lower() in (*PICTURES, *ARRAYS)]
    if not files:
        raise FormatError(f"{folder} holds no pictures, .npy or .npz files. Give another --samples")
    runs: Runs = []
    for path in files:
        if len(runs) >= args.most:
            break
        runs += runs_in(path, args, inputs, constants)
    return runs[: args.most]


def runs_in(
    path: Path, args: argparse.Namespace, inputs: Sequence[Variable], constants: Mapping[str, np.ndarray]
) -> Runs:
    """Return the runs that one file gives."""
    open_inputs = [x for x in inputs if x.name not in constants]
    if not open_inputs:
        raise FormatError(f"{path} is not needed: every input has its value. Leave out a --constant")
    if path.suffix.lower() in PICTURES:
        arrays = read_inputs([str(path)], inputs, look_of(args), constants)
        return [tuple(arrays[x.name] for x in inputs)]
    contents = read_npz(path) if path.suffix.lower() == ".npz" else {open_inputs[0].name: read_npy(path)}
    missing = [x.name for x in open_inputs if x.name not in contents]
    if missing:
        raise FormatError(f"{path} has no array for the input {missing[0]}. Add one of this name")
    counts = {run_count(contents[x.name], x.spec.shape) for x in open_inputs}
    if len(counts) > 1:
        raise FormatError(
            f"{path}: the inputs have {' and '.join(map(str, sorted(counts)))} runs. Give each input as many rows"
        )

    def part(x: Variable, i: int) -> np.ndarray:
        if x.name in constants:
            return constants[x.name]
        rows = contents[x.name][i * x.spec.shape[0] : (i + 1) * x.spec.shape[0]] if x.spec.shape else contents[x.name]
        return np.asarray(rows, x.spec.dtype) if np.can_cast(rows.dtype, x.spec.dtype, "same_kind") else rows

    return [tuple(part(x, i) for x in inputs) for i in range(counts.pop())]


def run_count(array: np.ndarray, shape: Sequence[int]) -> int:
    """Return the number of inputs of a shape that an array holds along its first axis."""
    return len(array) // max(shape[0], 1) if shape and array.ndim else 1
