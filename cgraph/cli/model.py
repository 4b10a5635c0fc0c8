"""What a user means by MODEL on the command line: a file by its ending, or a Python reference ``module:function``.

A file's reader stands in `READERS`; a Python reference is the user's own code, and runs.
"""

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from importlib import import_module
from pathlib import Path
from typing import Any

from cgraph.cell import Variable
from cgraph.errors import FormatError
from cgraph.formats import darknet, onnx
from cgraph.formats.model import Model as Read
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
        shapes: sizes of symbolic dimensions by name
        weights: the file with the parameters, where they are apart from the model
        invent: parameters that are nowhere are drawn from a fixed seed, for plans and timings
    """

    shapes: Mapping[str, int] = field(default_factory=dict)
    weights: Path | None = None
    invent: bool = True


def read_onnx(path: Path, options: Options) -> Model:
    return model_read(onnx.load(path, options.shapes))


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
        "--shape", type=size, action="append", default=[], metavar="NAME=SIZE", help="a symbolic dimension's size"
    )
    parser.add_argument("--weights", type=Path, metavar="FILE", help="the parameters of a .cfg network")


def size(text: str) -> tuple[str, int]:
    """``N=1`` as a name and a number."""
    name, equals, number = text.partition("=")
    if not (name and equals and number.isascii() and number.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size, such as N=1")
    return name, int(number)


def model_from(args: argparse.Namespace, invent: bool = True) -> Model:
    """The model that the arguments of `add_model` name."""
    if is_saved(args.model):
        raise FormatError(f"{args.model} is a saved function, which has no graph; cgraph run runs it")
    return load_model(args.model, Options(dict(args.shape), args.weights, invent))


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
