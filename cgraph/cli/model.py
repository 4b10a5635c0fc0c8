"""The MODEL argument of the command line: a file, by its ending, or a Python reference ``module:function``.

`READERS` has the reader of each ending; a Python reference runs the user's own code.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from cgraph.cli.model_arguments import ENDINGS, KERAS, SIZED, STANDARD_INPUT, constants_of, is_saved
from cgraph.errors import FormatError
from cgraph.formats import darknet, tflite
from cgraph.formats.model import Model as Read
from cgraph.formats.onnx.reader import build_model
from cgraph.formats.onnx.source import open_source
from cgraph.formats.unspecified import UnknownError
from cgraph.function import Function, compile
from cgraph.ir.graph import Node
from cgraph.ir.labels import distinct_names
from cgraph.ir.traverse import post_order
from cgraph.ops.leaf import Var
from cgraph.record import Record

REFERENCE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


class CliModel(Record):
    """A model from the command line: a graph to compile, or a compiled Function.

    Fields
        outputs, inputs, updates: as for `compile`
        function: the user's compiled Function; None if the command compiles
        names: names of the outputs, or none
        read: the model of a file, some lengths of which are known only at run time
    """

    outputs: tuple[Node, ...]
    inputs: tuple[Var, ...] = ()
    updates: Mapping[Var, Node] = field(default_factory=dict)
    function: Function | None = None
    names: tuple[str, ...] = ()
    read: Read | None = None

    def compiled(self, **options: Any) -> Function:
        """Return the Function: the user's own, unless `options` of `compile` ask for another."""
        if self.function is not None and not options:
            return self.function
        if self.read is not None:
            return self.read.compile(**options)
        names = distinct_names(self.names)
        outputs = dict(zip(names, self.outputs, strict=True)) if names else self.outputs
        return compile(outputs, self.inputs, self.updates, **options)


class ModelOptions(Record):
    """Options that a model file does not contain.

    Fields
        shapes: sizes of symbolic dimensions, and whole shapes of inputs, by name
        constants: values of inputs by name
        maximum: the greatest lengths of values, and the largest numbers, that are known only at run time
        weights: the file with the parameters, if they are separate from the model
        invent: draw missing parameters from a fixed seed, for plans and timings
        state: inputs that keep the value of an output from run to run
        floats: 8-bit inputs and outputs of a TFLite file are floats
    """

    shapes: Mapping[str, int | tuple[int, ...]] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    weights: Path | None = None
    invent: bool = True
    state: Mapping[str, str] = field(default_factory=dict)
    maximum: Mapping[str, int] = field(default_factory=dict)
    floats: bool = True


def read_onnx(path: Path, options: ModelOptions) -> CliModel:
    return onnx_from(path, str(path), options)


def onnx_from(source: Path | bytes, name: str, options: ModelOptions) -> CliModel:
    try:
        model = build_model(open_source(source, name), options.shapes, options.constants, options.maximum)
        return model_read(model.with_state(options.state))
    except FormatError as error:
        unknown: BaseException | None = error
        while unknown is not None and not isinstance(unknown, UnknownError):
            unknown = unknown.__cause__
        if unknown is None:
            raise
        reason = unknown.reason.removeprefix(f"{name}: ")
        raise FormatError(f"{name}: {reason}; give {arguments_of(unknown)}") from error


def arguments_of(error: UnknownError) -> str:
    """Return the options that would answer an error, as written on the command line."""
    shapes = [f"--shape {name}={'x'.join(map(str, np.atleast_1d(n)))}" for name, n in error.shapes.items()]
    values = " ".join(shapes + [f"--constant {name}=VALUE" for name in error.constants])
    return " or ".join(filter(None, (*(f"--maximum {name}=N" for name in error.maximum), values)))


def read_darknet(path: Path, options: ModelOptions) -> CliModel:
    if options.weights is None and not options.invent:
        raise FormatError(f"{path} describes a network without its parameters; give --weights FILE")
    return model_read(darknet.load(path, options.weights, seed=0 if options.weights is None else None))


def read_tflite(path: Path, options: ModelOptions) -> CliModel:
    """Read a network with the sizes in `shapes`, and otherwise those of the file."""
    from cgraph.formats.tflite.sizes import shapes_of

    inputs, _ = shapes_of(path, options.shapes)
    check_fixed(path, [n for shape in inputs.values() for n in shape if isinstance(n, str)])
    return model_read(tflite.load(path, options.floats, inputs))  # type: ignore[arg-type]


def read_keras(path: Path, options: ModelOptions) -> CliModel:
    """Read a network for batches of one, unless `shapes` gives another size."""
    from cgraph.formats.keras_archive import read_keras_model
    from cgraph.formats.keras_graph import BATCH, check_sizes, fixed_shape, keras_model, open_shapes

    file = read_keras_model(path)
    inputs, _ = open_shapes(file, path)
    check_sizes(inputs, options.shapes, path)
    sizes = {BATCH: 1, **options.shapes}
    check_fixed(path, [n for x, shape in inputs.items() for n in fixed_shape(x, shape, sizes) if isinstance(n, str)])
    return model_read(keras_model(file, path, sizes))


def check_fixed(path: Path, names: Iterable[str]) -> None:
    """Raise FormatError if sizes of inputs are unknown."""
    shapes = " ".join(f"--shape {name}=1" for name in dict.fromkeys(names))
    if shapes:
        raise FormatError(f"{path}: sizes of inputs are unknown; give {shapes}")


def model_read(model: Read) -> CliModel:
    read = model if model.is_open else None
    return CliModel(model.outputs, model.inputs, model.updates, names=model.names, read=read)


READERS: dict[str, Callable[[Path, ModelOptions], CliModel]] = dict(
    zip(ENDINGS, (read_onnx, read_darknet, read_tflite, *[read_keras] * len(KERAS)), strict=True)
)


def model_from(args: argparse.Namespace, invent: bool = True, floats: bool = True) -> CliModel:
    """Return the model that the arguments of `add_model` name; see `ModelOptions` for `invent` and `floats`."""
    if is_saved(args.model):
        raise FormatError(
            f"{args.model} is a folder: a saved function, which cgraph run runs, has no graph. Give the model file"
        )
    options = ModelOptions(
        dict(args.shape), dict(args.constant), args.weights, invent, dict(args.state), dict(args.maximum), floats
    )
    ending = ".onnx" if args.model == STANDARD_INPUT else Path(args.model).suffix.lower()
    flags = {
        "--shape": args.shape and ending not in SIZED,
        "--weights": args.weights and ending != ".cfg",
        "--state": args.state and ending != ".onnx",
        "--maximum": args.maximum and ending != ".onnx",
    }
    idle = [name for name, is_idle in flags.items() if is_idle]
    if idle:
        raise FormatError(f"{args.model}: {idle[0]} changes nothing here. Leave it out")
    model = load_model(args.model, options)
    constants_of(args, model.inputs)
    return model


def load_model(reference: str, options: ModelOptions | None = None) -> CliModel:
    """Return the model that a reference names. FormatError when there is none."""
    if reference == STANDARD_INPUT:
        return onnx_from(sys.stdin.buffer.read(), "standard input", options or ModelOptions())
    reader = READERS.get(Path(reference).suffix.lower())
    if reader is not None:
        return reader(Path(reference), options or ModelOptions())
    if not REFERENCE.fullmatch(reference):
        raise FormatError(
            f"{reference} is not a model: give a file ({', '.join(READERS)}) or a Python reference such as "
            "package.module:function"
        )
    return model_of(python_object(reference), reference)


def python_object(reference: str, call: bool = True) -> Any:
    """Import the object of ``module:name``. The current folder is searched first.

    Parameters
        call: if it is a function, return its result
    """
    module, name = reference.split(":")
    with _here_first():
        try:
            value = getattr(import_module(module), name)
            return value() if call and callable(value) and not isinstance(value, Function | Node) else value
        except Exception as error:
            raise FormatError(f"{reference}: {type(error).__name__}: {error}") from error


def model_of(value: Any, reference: str) -> CliModel:
    """Return a Function, a node, or several nodes, also by name, as a model. FormatError for anything else."""
    if isinstance(value, Function):
        return CliModel(value.outputs, value.inputs, value.updates, value, value.names)
    names = tuple(value) if isinstance(value, Mapping) else ()
    nodes = (value,) if isinstance(value, Node) else tuple(value.values()) if names else value
    is_named = all(isinstance(name, str) for name in names)
    if isinstance(nodes, Sequence) and nodes and is_named and all(isinstance(x, Node) for x in nodes):
        return CliModel(tuple(nodes), open_vars(nodes), names=names)
    raise FormatError(
        f"{reference} gives {value!r:.60}, expected a Function, a node, a sequence of nodes or a dictionary of nodes "
        "by name. Return one of these"
    )


def open_vars(nodes: Sequence[Node]) -> tuple[Var, ...]:
    """Return the Vars without a value, in the order of their creation: the inputs of a run."""
    variables = (x for x in post_order(nodes) if isinstance(x, Var) and not x.is_assigned)
    return tuple(sorted(variables, key=lambda x: x.serial))


@contextmanager
def _here_first():
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)
