"""What a user means by MODEL on the command line: a file by its ending, or a Python reference ``module:function``.

A file's reader stands in `READERS`; a Python reference is the user's own code, and runs.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from cgraph.cell import Variable, fitting_array
from cgraph.errors import FormatError
from cgraph.formats import darknet, onnx
from cgraph.formats.model import Model as Read
from cgraph.formats.unknown import UnknownError
from cgraph.function import Function, compile
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Var
from cgraph.record import Record
from cgraph.runner import Runner

REFERENCE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


class Model(Record):
    """A graph to be compiled, or one that is compiled already.

    Fields
        outputs, inputs, updates: as `compile` takes them
        function: what the user compiled; None when that is left to the command
        names: what the outputs are called
    """

    outputs: tuple[Node, ...]
    inputs: tuple[Var, ...] = ()
    updates: Mapping[Var, Node] = field(default_factory=dict)
    function: Function | None = None
    names: tuple[str, ...] = ()

    def compiled(self, **options: Any) -> Function:
        """The Function: the user's own, unless `options` of `compile` ask for another."""
        if self.function is not None and not options:
            return self.function
        return compile(self.outputs, self.inputs, self.updates, **options)


class SavedModel(Record):
    """A function that was saved: compiled, and without a graph."""

    function: Runner
    names = ()

    @property
    def inputs(self) -> tuple[Variable, ...]:
        return self.function.inputs

    def compiled(self, **options: Any) -> Runner:
        """The function itself, whatever the options."""
        return self.function


class Options(Record):
    """What a file alone does not say.

    Fields
        shapes: sizes of symbolic dimensions, and whole shapes of inputs, by name
        constants: values of inputs by name
        weights: the file with the parameters, where they are apart from the model
        invent: parameters that are nowhere are drawn from a fixed seed, for plans and timings
        state: inputs that keep the value of an output from run to run
    """

    shapes: Mapping[str, int | tuple[int, ...]] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    weights: Path | None = None
    invent: bool = True
    state: Mapping[str, str] = field(default_factory=dict)


def read_onnx(path: Path, options: Options) -> Model:
    try:
        return model_read(onnx.load(path, options.shapes, options.constants).with_state(options.state))
    except FormatError as error:
        found = error if isinstance(error, UnknownError) else error.__cause__
        if not isinstance(found, UnknownError):
            raise
        raise FormatError(f"{path}: {found.reason}; give {' '.join(arguments_of(found))}") from error


def arguments_of(error: UnknownError) -> list[str]:
    """What an error asks for, as it is written on the command line."""
    shapes = [f"--shape {name}={'x'.join(map(str, np.atleast_1d(n)))}" for name, n in error.shapes.items()]
    return shapes + [f"--constant {name}=VALUE" for name in error.constants]


def read_darknet(path: Path, options: Options) -> Model:
    if options.weights is None and not options.invent:
        raise FormatError(f"{path} describes a network without its parameters; give --weights FILE")
    return model_read(darknet.load(path, options.weights, seed=0 if options.weights is None else None))


def model_read(found: Read) -> Model:
    return Model(found.outputs, found.inputs, found.updates, names=found.names)


READERS: dict[str, Callable[[Path, Options], Model]] = {".onnx": read_onnx, ".cfg": read_darknet}  # by file ending


def add_model(parser: argparse.ArgumentParser) -> None:
    """The arguments that name a model."""
    known = ", ".join(READERS)
    parser.add_argument("model", help=f"a file ({known}), or a Python reference module:function")
    parser.add_argument(
        "--shape",
        type=size,
        action="append",
        default=[],
        metavar="NAME=SIZE",
        help="a symbolic dimension's size, or an input's whole shape, as x=1x3",
    )
    parser.add_argument(
        "--constant",
        type=constant,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an input's value: a number, a list such as [1,2], or a .npy file",
    )
    parser.add_argument("--weights", type=Path, metavar="FILE", help="the parameters of a .cfg network")
    parser.add_argument(
        "--state",
        type=state,
        action="append",
        default=[],
        metavar="INPUT=OUTPUT",
        help="an input that holds an output's value after each run, such as past=present; zeros before the first",
    )


def size(text: str) -> tuple[str, int | tuple[int, ...]]:
    """``N=1`` as a name and a number, ``x=1x3`` as a name and a shape."""
    name, _, numbers = text.rpartition("=")
    parts = numbers.split("x")
    if not (name and all(part.isascii() and part.isdigit() for part in parts)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size, such as N=1 or x=1x3")
    sizes = tuple(map(int, parts))
    return name, sizes if len(sizes) > 1 else sizes[0]


def constant(text: str) -> tuple[str, Any]:
    """``sr=16000`` as a name and a number, a list or an array."""
    name, equals, value = text.partition("=")
    try:
        found = np.load(value, allow_pickle=False) if value.endswith(".npy") else json.loads(value)
    except (OSError, ValueError, EOFError, RecursionError):
        found = None
    if not (name and equals and isinstance(found, int | float | list | np.ndarray)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a value, such as sr=16000, s=[1,2] or s=FILE.npy")
    return name, found


def state(text: str) -> tuple[str, str]:
    """``past=present`` as two names."""
    given, equals, source = text.partition("=")
    if not (given and equals and source):
        raise argparse.ArgumentTypeError(f"{text!r} is not a state, such as past=present")
    return given, source


def constants_of(args: argparse.Namespace, inputs: Sequence[Variable]) -> dict[str, np.ndarray]:
    """The values that are given with ``--constant``, for the inputs that a model has."""
    by_name = {x.name: x for x in inputs}
    unknown = [name for name, _ in args.constant if name not in by_name]
    if unknown:
        raise FormatError(f"--constant {unknown[0]}: there is no such input; there are {', '.join(by_name)}")
    return {name: fitting_array(value, by_name[name].spec, name) for name, value in args.constant}


def model_from(args: argparse.Namespace, invent: bool = True) -> Model:
    """The model that the arguments of `add_model` name."""
    if is_saved(args.model):
        raise FormatError(f"{args.model} is a saved function, which has no graph; cgraph run runs it")
    options = Options(dict(args.shape), dict(args.constant), args.weights, invent, dict(args.state))
    ending = Path(args.model).suffix.lower()
    given = {
        "--shape": args.shape and ending != ".onnx",
        "--weights": args.weights and ending != ".cfg",
        "--state": args.state and ending != ".onnx",
    }
    idle = [name for name, is_idle in given.items() if is_idle]
    if idle:
        raise FormatError(f"{args.model}: {idle[0]} changes nothing here")
    found = load_model(args.model, options)
    constants_of(args, found.inputs)
    return found


def is_saved(reference: str) -> bool:
    """A folder is a function that was saved."""
    return Path(reference).is_dir()


def load_model(reference: str, options: Options | None = None) -> Model:
    """The model that a reference names. FormatError when there is none."""
    reader = READERS.get(Path(reference).suffix.lower())
    if reader is not None:
        return reader(Path(reference), options or Options())
    if not REFERENCE.fullmatch(reference):
        raise FormatError(
            f"{reference} is no model: give a file ({', '.join(READERS)}) or a Python reference such as "
            "package.module:function"
        )
    return model_of(python_object(reference), reference)


def python_object(reference: str) -> Any:
    """What ``module:name`` names, and what it returns if it is a function; the folder one is in is searched first."""
    module, name = reference.split(":")
    with _here_first():
        try:
            found = getattr(import_module(module), name)
            return found() if callable(found) and not isinstance(found, Function) else found
        except Exception as error:
            raise FormatError(f"{reference}: {type(error).__name__}: {error}") from error


def model_of(found: Any, reference: str) -> Model:
    """A Function, a node, or several nodes as a model. FormatError for anything else."""
    if isinstance(found, Function):
        return Model(found.outputs, found.inputs, found.updates, found)
    if isinstance(found, Node):
        return Model((found,))
    if isinstance(found, Sequence) and found and all(isinstance(x, Node) for x in found):
        return Model(tuple(found))
    raise FormatError(f"{reference} gives {found!r:.60}, expected a Function, a node or a sequence of nodes")


@contextmanager
def _here_first():
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)
