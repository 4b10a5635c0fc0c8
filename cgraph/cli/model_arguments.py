"""Command-line arguments that name a model, without the readers: a saved function needs none of them."""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.npz import read_npy
from cgraph.storage.cell import Variable, fitting_array

KERAS = (".keras", ".h5", ".hdf5")
ENDINGS = (".onnx", ".cfg", ".tflite", *KERAS)  # endings of model files
SIZED = (".onnx", ".tflite", *KERAS)  # of those whose inputs may have open sizes
STANDARD_INPUT = "-"


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a model."""
    endings = ", ".join(ENDINGS)

    def add_pairs(option: str, parse: Callable[[str], Any], metavar: str, help: str) -> None:
        parser.add_argument(option, type=parse, action="append", default=[], metavar=metavar, help=help)

    parser.add_argument(
        "model",
        help=f"a file ({endings}), - for an ONNX file from standard input, or a Python reference module:function",
    )
    add_pairs("--shape", size, "NAME=SIZE", "a symbolic dimension's size, or an input's whole shape, as x=1x3")
    add_pairs("--constant", constant, "NAME=VALUE", "an input's value: a number, a list such as [1,2], or a .npy file")
    add_pairs(
        "--maximum",
        maximum,
        "NAME=N",
        "the greatest length of a value, or largest number it is computed from, that is known only when run",
    )
    parser.add_argument("--weights", type=Path, metavar="FILE", help="the parameters of a .cfg network")
    add_pairs(
        "--state",
        state,
        "INPUT=OUTPUT",
        "an input that holds an output's value after each run, such as past=present; zeros before the first",
    )


def size(text: str) -> tuple[str, int | tuple[int, ...]]:
    """Parse ``N=1`` as a name and a number, ``x=1x3`` as a name and a shape."""
    name, _, numbers = text.rpartition("=")
    parts = numbers.split("x")
    if not (name and all(part.isascii() and part.isdigit() for part in parts)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size, such as N=1 or x=1x3")
    sizes = tuple(map(int, parts))
    return name, sizes if len(sizes) > 1 else sizes[0]


def constant(text: str) -> tuple[str, Any]:
    """Parse ``sr=16000`` as a name and a number, a list or an array."""
    name, equals, value = text.partition("=")
    try:
        content = read_npy(value) if value.lower().endswith(".npy") else json.loads(value)
    except FormatError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    except (ValueError, RecursionError):
        content = None
    if not (name and equals and isinstance(content, int | float | list | np.ndarray)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a value, such as sr=16000, s=[1,2] or s=FILE.npy")
    return name, content


def maximum(text: str) -> tuple[str, int]:
    """Parse ``boxes=100`` as a name and a number."""
    name, _, number = text.rpartition("=")
    if not (name and number.isascii() and number.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a maximum, such as boxes=100")
    return name, int(number)


def state(text: str) -> tuple[str, str]:
    """Parse ``past=present`` as two names."""
    target, equals, source = text.partition("=")
    if not (target and equals and source):
        raise argparse.ArgumentTypeError(f"{text!r} is not a state, such as past=present")
    return target, source


def constants_of(args: argparse.Namespace, inputs: Sequence[Variable]) -> dict[str, np.ndarray]:
    """Return the values from ``--constant`` for the inputs of a model."""
    by_name = {x.name: x for x in inputs}
    unknown = [name for name, _ in args.constant if name not in by_name]
    if unknown:
        raise FormatError(f"--constant {unknown[0]}: the model has no such input. Use one of {', '.join(by_name)}")
    return {name: fitting_array(value, by_name[name].spec, name) for name, value in args.constant}


def is_saved(reference: str) -> bool:
    """Return True for a folder, which is a saved function."""
    return Path(reference).is_dir()
