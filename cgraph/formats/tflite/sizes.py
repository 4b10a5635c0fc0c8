"""function_of: the function of a TFLite file, some of whose sizes may vary from call to call.

A file marks the axes of its inputs whose size is open, and gives each a placeholder, which is 1. Axis 1 of the input
``x`` is the size ``x.1``. The first of several axes, the batch, has the size in the file unless it is asked for.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cgraph.errors import FormatError
from cgraph.formats.tflite.reader import check_shapes, check_supported, load, numbers_of, open_file
from cgraph.formats.tflite.schema import SubgraphFields
from cgraph.formats.tflite.source import TensorFacts
from cgraph.function import Function
from cgraph.ir.labels import distinct_names
from cgraph.sizes import SizedFunction, Sizes

Shape = tuple[int | str, ...]


def function_of(path: Path, sizes: Mapping[str, Any], options: Mapping[str, Any]) -> Function | SizedFunction:
    """Return the Function of a file, or one of all sizes if the file leaves some open.

    Parameters
        sizes: shapes by the name of an input, or sizes by that of an axis; a size may be a name, then it varies
        options: for `cgraph.compile`
    Raises
        FormatError: as for `load`; a name belongs to no input or axis; sizes vary and the file has state
    """
    shapes, outputs = shapes_of(path, sizes)
    if not any(isinstance(n, str) for shape in shapes.values() for n in shape):
        return load(path, shapes=shapes if sizes else None).compile(**options)  # type: ignore[arg-type]

    def build(varying: Sizes) -> Callable[..., Function]:
        whole = {x: tuple(n if isinstance(n, int) else varying[n] for n in shape) for x, shape in shapes.items()}
        model = load(path, shapes=whole)
        if model.updates:
            raise FormatError(
                f"{path.name}: the file has state, so its sizes cannot vary. Give shapes=, such as shapes={whole}"
            )
        return model.compile

    return SizedFunction(build, shapes, None, options, distinct_names(outputs, shapes))


def shapes_of(path: Path, sizes: Mapping[str, Any]) -> tuple[dict[str, Shape], list[str]]:
    """Return the shape of each input, with names for sizes that vary, and the names of the outputs."""
    with open_file(path) as file:
        check_supported(file, file.places(file.graph, SubgraphFields.OPERATORS))
        inputs = [file.tensor(i) for i in numbers_of(file, file.graph, SubgraphFields.INPUTS)]
        outputs = [file.tensor(i).name for i in numbers_of(file, file.graph, SubgraphFields.OUTPUTS)]
        axes = [n for x in inputs for n in axis_names(x) if isinstance(n, str)]
        check_shapes(inputs, {name: shape for name, shape in sizes.items() if name not in axes}, axes)
    return {x.name: shape_of(x, sizes) for x in inputs}, outputs


def axis_names(x: TensorFacts) -> Shape:
    """Return the shape of an input with names for open axes."""
    return tuple(f"{x.name}.{i}" if i in x.open_axes else n for i, n in enumerate(x.shape))


def shape_of(x: TensorFacts, sizes: Mapping[str, Any]) -> Shape:
    """Return the shape of an input, with names for sizes that vary."""
    if x.name in sizes:
        return tuple(sizes[x.name])
    shape = [n if isinstance(n, int) else sizes.get(n, n) for n in axis_names(x)]
    if len(shape) > 1 and shape[0] == f"{x.name}.0":
        shape[0] = x.shape[0]
    return tuple(shape)
