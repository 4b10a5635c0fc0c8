"""compile_sizes: one function for a model with symbolic dimensions."""

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
    """Compile one function of a model whose symbolic dimensions vary; it returns a list of the outputs.

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
    shapes = shapes_of(opened.proto)
    stored = stored_names(opened.proto)
    with opened.named():
        for x in opened.proto.graph.input:
            if x.name not in shapes and x.name not in stored and x.name not in (constants or {}):
                raise FormatError(
                    f"input {x.name!r} is not a tensor of a fixed number of axes. Use load with constants="
                )

    def build(sizes: Sizes) -> tuple:
        whole = {x: tuple(n if isinstance(n, int) else sizes[n] for n in shape) for x, shape in shapes.items()}
        model = build_model(opened, whole, constants or {}, {})
        if model.is_open:
            raise FormatError(
                f"{opened.label}: dynamic lengths cannot be combined with sizes that vary between calls. Use load "
                "with shapes="
            )
        return list(model.outputs), model.inputs, model.updates

    return compiled(build, shapes, most, **options)


def open_shapes(source: str | Path | bytes) -> dict[str, tuple[int | str, ...]]:
    """Return the shape of each input, with names for symbolic dimensions. FormatError as for `load`."""
    return shapes_of(open_source(source).proto)


def stored_names(proto: Any) -> set[str]:
    """Return the names of inputs that have initialisers."""
    return {t.name for t in proto.graph.initializer} | {t.values.name for t in proto.graph.sparse_initializer}


def shapes_of(proto: Any) -> dict[str, tuple[int | str, ...]]:
    """Return the shapes of inputs; those without a number of axes, and those that are not tensors, are omitted."""
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
