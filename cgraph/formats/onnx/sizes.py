"""Models whose file leaves sizes open: one function for all of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cgraph.errors import FormatError
from cgraph.formats.onnx.reader import build_model
from cgraph.formats.onnx.source import open_source
from cgraph.sizes import SizedFunction, Sizes
from cgraph.sizes import compile_sizes as compiled


def compile_sizes(
    source: str | Path | bytes,
    most: Sizes | None = None,
    constants: Mapping[str, Any] | None = None,
    **options: Any,
) -> SizedFunction:
    """One function of a model whose symbolic dimensions vary; it returns a list of the outputs.

    Parameters
        source, constants: as for `load`
        most: the largest sizes by name, whose plan's memory no other size exceeds; without it, memory grows with what
            comes. An axis without a name is called after its input and its position: ``x.0``
        options: as for `cgraph.compile`
    Raises
        FormatError: as for `load`; an input is no tensor, or has no number of axes
        GraphError: no size is open; `most` gives others
    """
    opened = open_source(source)
    shapes = shapes_of(opened.proto)
    stored = stored_names(opened.proto)
    with opened.named():
        for x in opened.proto.graph.input:
            if x.name not in shapes and x.name not in stored and x.name not in (constants or {}):
                raise FormatError(f"input {x.name!r} is no tensor with a number of axes, which alone may vary in size")

    def build(sizes: Sizes) -> tuple:
        whole = {x: tuple(n if isinstance(n, int) else sizes[n] for n in shape) for x, shape in shapes.items()}
        model = build_model(opened, whole, constants or {}, {})
        if model.is_open:
            raise FormatError(
                f"{opened.label}: lengths that are known only when run do not go with sizes that vary from call to call"
            )
        return list(model.outputs), model.inputs, model.updates

    return compiled(build, shapes, most, **options)


def open_shapes(source: str | Path | bytes) -> dict[str, tuple[int | str, ...]]:
    """Per input of a model its shape, with names for what is open. FormatError as for `load`."""
    return shapes_of(open_source(source).proto)


def stored_names(proto: Any) -> set[str]:
    """The inputs of a ModelProto that have values there."""
    return {t.name for t in proto.graph.initializer} | {t.values.name for t in proto.graph.sparse_initializer}


def shapes_of(proto: Any) -> dict[str, tuple[int | str, ...]]:
    """Per input its shape; inputs that are no tensors, or have any number of axes, are left out."""
    stored = stored_names(proto)
    shapes: dict[str, tuple[int | str, ...]] = {}
    for x in proto.graph.input:
        if x.name in stored or x.type.WhichOneof("value") != "tensor_type" or not x.type.tensor_type.HasField("shape"):
            continue
        dims = x.type.tensor_type.shape.dim
        shapes[x.name] = tuple(
            int(d.dim_value) if d.WhichOneof("value") == "dim_value" else d.dim_param or f"{x.name}.{axis}"
            for axis, d in enumerate(dims)
        )
    return shapes
