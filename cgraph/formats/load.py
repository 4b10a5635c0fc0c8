"""load_model: a model file as a callable function. The first bytes of a file determine its format, then its name.

`cgraph.load` calls it for everything except folders.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from cgraph.errors import FormatError
from cgraph.formats.unspecified import UnknownError
from cgraph.function import Function
from cgraph.record import Record
from cgraph.sizes import SizedFunction
from cgraph.storage.weight_file import StreamedWeights

Loaded = Function | SizedFunction


class FileSettings(Record):
    """What a file leaves open, as `cgraph.load` documents it."""

    shapes: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    maximum: Mapping[str, int] = field(default_factory=dict)
    state: Mapping[str, str] = field(default_factory=dict)
    weights: str | os.PathLike | None = None


def load_model(path: str | os.PathLike, model_options: Mapping[str, Any], options: Mapping[str, Any]) -> Loaded:
    """Return the Function of a model file, or one of all sizes if the file leaves some open.

    Parameters
        model_options: fields of `FileSettings`; None for those without a value
        options: for `cgraph.compile`
    Raises
        FormatError: the file is not a model that can be read, or an option does not apply to its format
    """
    reader = READERS[kind_of(path)]
    settings = {name: value for name, value in model_options.items() if value is not None}
    weights = settings.get("weights")
    if isinstance(weights, StreamedWeights):  # an option of compile
        options = {**options, "weights": settings.pop("weights")}
    for name in settings:
        if name not in reader.takes:
            raise FormatError(f"{os.fspath(path)}: {name}= does not apply to {reader.name}. Leave it out")
    return reader.read(Path(path), FileSettings(**settings), options)


def load_onnx(path: Path, settings: FileSettings, options: Mapping[str, Any]) -> Loaded:
    """Return the function of an ONNX file.

    Symbolic dimensions that `shapes` does not give vary from call to call, as do small inputs that determine shapes.
    """
    from cgraph.formats.onnx.reader import build_model, check_names, check_operators
    from cgraph.formats.onnx.sizes import Reading, shapes_of, valued
    from cgraph.formats.onnx.source import open_source
    from cgraph.formats.onnx.valued import are_small

    opened = open_source(path)
    with opened.named():
        check_names(opened.proto.graph, settings.shapes)
        check_operators(opened)
    shapes = {name: fixed_sizes(name, shape, settings.shapes) for name, shape in shapes_of(opened.proto).items()}
    reading = Reading(settings.shapes, settings.constants, settings.maximum)
    if any(isinstance(n, str) for shape in shapes.values() for n in shape):
        if settings.state:
            raise FormatError(f"{path}: state= needs fixed sizes. Give shapes=, such as shapes={{'batch': 1}}")
        return valued(opened, shapes, reading, options)
    try:
        model = build_model(opened, settings.shapes, settings.constants, settings.maximum)
    except UnknownError as error:
        if settings.state or not are_small(error.constants, shapes):
            raise
        return valued(opened, shapes, reading, options)
    return model.with_state(settings.state).compile(**options)


def fixed_sizes(name: str, shape: tuple[int | str, ...], sizes: Mapping[str, Any]) -> tuple[int | str, ...]:
    """Return a shape with the sizes that are given by the input's or a dimension's name."""
    if name in sizes:
        whole = sizes[name]
        return tuple(whole) if isinstance(whole, list | tuple) else (whole,)
    return tuple(sizes.get(n, n) if isinstance(n, str) else n for n in shape)


def load_tflite(path: Path, settings: FileSettings, options: Mapping[str, Any]) -> Loaded:
    """Return the function of a TFLite file, with the file's own inputs and outputs: images ``[n, h, w, c]``."""
    from cgraph.formats.tflite.sizes import function_of

    return function_of(path, settings.shapes, options)


def load_darknet(path: Path, settings: FileSettings, options: Mapping[str, Any]) -> Loaded:
    """Return the Function of a Darknet network, one image at a time unless ``shapes={"batch": n}``."""
    from cgraph.formats import darknet

    if settings.weights is None:
        raise FormatError(
            f"{path} describes a network without its parameters. Pass weights={path.with_suffix('.weights').name!r}"
        )
    batch = batch_of(path, settings)
    return darknet.load(path, os.fspath(settings.weights), batch=1 if batch is None else batch).compile(**options)


def load_keras_file(path: Path, settings: FileSettings, options: Mapping[str, Any]) -> Loaded:
    """Return the function of a Keras file. Sizes that the network leaves open and `shapes` does not give may vary.

    Images are ``[n, c, h, w]``, sequences ``[n, t, c]``. Axis 1 of the input ``tokens`` is the size ``tokens.1``.
    """
    from cgraph.formats.keras_archive import read_keras_model
    from cgraph.formats.keras_graph import check_sizes, fixed_shape, keras_model, open_shapes

    file = read_keras_model(path)
    inputs, outputs = open_shapes(file, path)
    check_sizes(inputs, settings.shapes, path)
    shapes = {name: fixed_shape(name, shape, settings.shapes) for name, shape in inputs.items()}
    if all(isinstance(n, int) for shape in shapes.values() for n in shape):
        return keras_model(file, path, settings.shapes).compile(**options)

    def build(sizes: Mapping[str, int]) -> Callable[..., Function]:
        return keras_model(file, path, {**settings.shapes, **sizes}).compile

    return SizedFunction(build, shapes, None, options, outputs)


def batch_of(path: Path, settings: FileSettings) -> int | None:
    """Return the size of the batch in `shapes`, or None. FormatError for any other size."""
    others = [name for name in settings.shapes if name != "batch"]
    if others:
        raise FormatError(
            f"{path}: {others[0]!r} is not a size of this network; only 'batch' is. Pass shapes={{'batch': 1}}"
        )
    return settings.shapes.get("batch")


class ModelReader(Record):
    """How files of one format become functions.

    Fields
        name: the format, for messages
        takes: options of `FileSettings` that apply
    """

    name: str
    read: Callable[[Path, FileSettings, Mapping[str, Any]], Loaded]
    takes: tuple[str, ...] = ()


READERS = {
    "onnx": ModelReader("an ONNX file", load_onnx, ("shapes", "constants", "maximum", "state")),
    "tflite": ModelReader("a TFLite file", load_tflite, ("shapes",)),
    "darknet": ModelReader("a Darknet network", load_darknet, ("shapes", "weights")),
    "keras": ModelReader("a Keras file", load_keras_file, ("shapes",)),
}
HEAD = 64  # bytes by which a format is recognised
HDF5 = b"\x89HDF\r\n\x1a\n"
ZIP, NAME_AT = b"PK\3\4", 30  # the name of the first member lies there
KERAS_MEMBERS = (b"metadata.json", b"config.json")
SUFFIXES = {
    ".onnx": "onnx",
    ".tflite": "tflite",
    ".cfg": "darknet",
    ".h5": "keras",
    ".hdf5": "keras",
    ".keras": "keras",
}
ELSEWHERE = {
    ".pt": "a torch file: weights without a graph. Export the model with torch.onnx.export, or see nn.load_torch",
    ".pth": "a torch file: weights without a graph. Export the model with torch.onnx.export, or see nn.load_torch",
    ".safetensors": "weights without a graph. Use nn.load_weights, or Function.load_state",
    ".npz": "arrays without a graph. Use cgraph.formats.npz.read_npz",
    ".weights": "the parameters of a Darknet network. Load its .cfg file, with weights= this one",
    ".pb": "a TensorFlow graph, which is not read. Convert it to ONNX (tf2onnx) or TFLite",
}


def kind_of(path: str | os.PathLike) -> str:
    """Return the format of a file: a key of `READERS`. FormatError if it is not a model that can be read."""
    name, suffix = os.fspath(path), Path(path).suffix.lower()
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD)
    except OSError as error:
        raise FormatError(f"{name}: {error.strerror}") from None
    if not head:
        raise FormatError(f"{name} is empty. Download or save it again")
    if head.startswith(b"version https://git-lfs"):
        raise FormatError(f"{name} is a pointer of Git LFS, not the file itself. Fetch it with git lfs pull")
    if head.lstrip()[:9].lower().startswith((b"<!doctype", b"<html")):
        raise FormatError(f"{name} is a web page. Download the file itself")
    kind = by_content(head) or SUFFIXES.get(suffix) or by_first_byte(head)
    if suffix in ELSEWHERE and kind != "keras":
        raise FormatError(f"{name} is {ELSEWHERE[suffix]}")
    if kind is None:
        raise FormatError(
            f"{name} is not a model that can be read. Pass a file {', '.join(SUFFIXES)}, or a folder of Function.save"
        )
    return kind


def by_content(head: bytes) -> str | None:
    """Return the format whose mark a file begins with; None if it has none."""
    if head.startswith(HDF5) or head.startswith(ZIP) and head[NAME_AT:].startswith(KERAS_MEMBERS):
        return "keras"
    return "tflite" if head[4:8] == b"TFL3" else None


def by_first_byte(head: bytes) -> str | None:
    """Return the likely format of a file without mark and known ending: ONNX's version field, or a section."""
    if head[0] == 8 and len(head) > 2 and head[1] < HEAD:
        return "onnx"
    return "darknet" if head.lstrip().startswith((b"[net]", b"[network]")) else None
