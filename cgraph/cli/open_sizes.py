"""Open sizes of a model file, taken from the input arrays."""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

from cgraph.cli.arrays import check_name
from cgraph.cli.model_arguments import SIZED
from cgraph.cli.pictures import PICTURES
from cgraph.cli.sounds import SOUNDS, shape_of_sound
from cgraph.formats import onnx
from cgraph.formats.npz import read_npy, read_npz

Shapes = Mapping[str, tuple[int | str, ...]]


def sizes_from_inputs(args: argparse.Namespace) -> list[tuple[str, int | tuple[int, ...]]]:
    """Return the sizes that ``--input`` determines and ``--shape`` does not: sizes by name, whole shapes if axes have
    no names.

    A picture is a batch of one. Inputs that do not fit are reported when they are read.
    """
    ending = Path(args.model).suffix.lower()
    if ending not in SIZED:
        return []
    shapes, named = open_shapes_of(args.model, ending), dict(args.shape)
    open_sizes: dict[str, int | tuple[int, ...]] = {}
    for name, sizes in sizes_given(args, shapes):
        shape = shapes[name]
        if name in named or len(sizes) != len(shape):
            continue
        for i, (size, axis) in enumerate(zip(sizes, shape)):
            if axis == f"{name}.{i}":
                open_sizes[name] = sizes
            elif isinstance(axis, str) and axis not in named:
                open_sizes.setdefault(axis, size)
    return list(open_sizes.items())


def open_shapes_of(path: str, ending: str) -> Shapes:
    """Return the shapes of a file's inputs, with names for open axes."""
    if ending == ".onnx":
        return onnx.open_shapes(path)
    if ending == ".tflite":
        from cgraph.formats.tflite.sizes import shapes_of

        return shapes_of(Path(path), {})[0]
    from cgraph.formats.keras_archive import read_keras_model
    from cgraph.formats.keras_graph import open_shapes

    return open_shapes(read_keras_model(path), path)[0]


def sizes_given(args: argparse.Namespace, shapes: Shapes) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Return the input of each file, in the order of `read_inputs`, with the file's shape."""
    waiting = [name for name in shapes if name not in dict(args.constant)]
    for text in args.input:
        name, equals, file = text.partition("=")
        check_name(text, shapes)
        if not equals or name not in shapes:
            name, file = (waiting or [""])[0], text
        path = Path(file)
        if path.suffix.lower() == ".npz":
            yield from ((key, array.shape) for key, array in read_npz(path).items() if key in shapes)
            continue
        if name not in waiting:
            continue
        waiting.remove(name)
        yield name, shape_of_file(path, shapes[name])


def shape_of_file(path: Path, shape: tuple[int | str, ...]) -> tuple[int, ...]:
    """Return the shape of a .npy file or sound; of a picture if only the batch is open."""
    if path.suffix.lower() in PICTURES:
        sizes = tuple(n for n in shape[1:] if isinstance(n, int))
        return (1, *sizes) if len(sizes) == len(shape) - 1 else ()
    if path.suffix.lower() in SOUNDS:
        return shape_of_sound(path, shape)
    return read_npy(path).shape
