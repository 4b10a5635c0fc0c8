"""compile_sizes: one function for a model with symbolic dimensions."""

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Unpack

from cgraph.errors import FormatError
from cgraph.formats.model import Model
from cgraph.formats.onnx.reader import build_model, declared_size, dimension_name, stored_names
from cgraph.formats.onnx.source import Source, open_source
from cgraph.formats.onnx.valued import ValuedFunction
from cgraph.function import Function
from cgraph.ir.labels import distinct_names
from cgraph.planning.options import COMPILE_KEYWORDS, CompileKeywords
from cgraph.record import Record, replace
from cgraph.sizes import SizedFunction, Sizes
from cgraph.system.keywords import checks_keywords


@checks_keywords(COMPILE_KEYWORDS)
def compile_sizes(
    source: str | Path | bytes,
    most: Sizes | None = None,
    constants: Mapping[str, Any] | None = None,
    **options: Unpack[CompileKeywords],
) -> SizedFunction:
    """Compile one function of a model whose symbolic dimensions vary; its results are lists with the outputs' names.

    Parameters
        source, constants: as for `load`
        most: the largest sizes by name; their plan bounds the memory of all sizes. Without it, memory grows with the
            sizes of calls. An axis without a name is called ``x.0``, by its input and index
        options: as for `cgraph.compile`
    Raises
        FormatError: as for `load`; an input is not a tensor, or its number of axes is unknown
        GraphError: the model has no symbolic dimension, or `most` has other names
    """
    opened = open_source(source)
    return sized(opened, shapes_of(opened.proto), most, Reading(constants=constants or {}), options)


class Reading(Record):
    """What a model is read with, as `load` documents it."""

    shapes: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    maximum: Mapping[str, int] = field(default_factory=dict)


def sized(
    opened: Source,
    shapes: Mapping[str, tuple[int | str, ...]],
    most: Sizes | None,
    reading: Reading,
    options: Mapping[str, Any],
) -> SizedFunction:
    """Return one function of an opened model for all sizes. FormatError for an input of an unknown number of axes."""
    check_tensors(opened, shapes, reading)

    def build(sizes: Sizes) -> Callable[..., Function]:
        return model_at(opened, shapes, reading, sizes).compile

    return SizedFunction(build, shapes, most, options, output_names(opened, shapes))


def valued(
    opened: Source, shapes: Mapping[str, tuple[int | str, ...]], reading: Reading, options: Mapping[str, Any]
) -> ValuedFunction:
    """Return one function of an opened model for all sizes, and for all values of inputs that determine shapes.

    FormatError for an input of an unknown number of axes.
    """
    check_tensors(opened, shapes, reading)

    def build(sizes: Sizes, values: Mapping[str, Any]) -> Model:
        return model_at(opened, shapes, replace(reading, constants={**reading.constants, **values}), sizes)

    return ValuedFunction(build, shapes, options, output_names(opened, shapes))


def model_at(opened: Source, shapes: Mapping[str, tuple[int | str, ...]], reading: Reading, sizes: Sizes) -> Model:
    """Return the graph of an opened model at some sizes."""
    whole = {x: tuple(n if isinstance(n, int) else sizes[n] for n in shape) for x, shape in shapes.items()}
    return build_model(opened, whole, reading.constants, reading.maximum)


def output_names(opened: Source, shapes: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the outputs, distinct from each other and from the inputs."""
    return distinct_names([x.name for x in opened.proto.graph.output], shapes)


def check_tensors(opened: Source, shapes: Mapping[str, Any], reading: Reading) -> None:
    """Raise FormatError unless each input without a constant value is a tensor of a fixed number of axes."""
    stored = stored_names(opened.proto.graph)
    with opened.named():
        for x in opened.proto.graph.input:
            if x.name not in shapes and x.name not in stored and x.name not in reading.constants:
                raise FormatError(
                    f"input {x.name!r} is not a tensor of a fixed number of axes. Use load with shapes= or constants="
                )


def open_shapes(source: str | Path | bytes) -> dict[str, tuple[int | str, ...]]:
    """Return the shape of each input, with names for symbolic dimensions. FormatError as for `load`."""
    return shapes_of(open_source(source).proto)


def shapes_of(proto: Any) -> dict[str, tuple[int | str, ...]]:
    """Return the shapes of inputs; those without a number of axes, and those that are not tensors, are omitted."""
    stored = stored_names(proto.graph)
    shapes: dict[str, tuple[int | str, ...]] = {}
    for x in proto.graph.input:
        if x.name in stored or x.type.WhichOneof("value") != "tensor_type" or not x.type.tensor_type.HasField("shape"):
            continue
        dims = x.type.tensor_type.shape.dim
        shapes[x.name] = tuple(
            (dimension_name(d) or f"{x.name}.{axis}") if size is None else size
            for axis, (d, size) in enumerate(zip(dims, map(declared_size, dims)))
        )
    return shapes
