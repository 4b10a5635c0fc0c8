"""Pictures as samples that stay in their files until a batch needs them."""

from collections.abc import Collection
from pathlib import Path

import numpy as np

from cgraph import InputError
from nn.checks import check_integer
from nn.loader import SampleSource


class PictureFiles(SampleSource):
    """Pictures of one size from files, as float32 ``[n, 3, rows, columns]`` of 0 to 1. Needs Pillow (extra `image`).

    A JPEG, PNG, BMP, GIF or WebP file is decoded whenever a batch has it, turned upright, and stretched to the size.

    Fields
        paths: the files
        rows, columns: size of the arrays
    """

    paths: tuple[Path, ...]
    rows: int
    columns: int

    def __post_init__(self) -> None:
        check_integer("rows", self.rows, 1)
        check_integer("columns", self.columns, 1)

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, numbers: np.ndarray) -> np.ndarray:
        from cgraph.cli.pictures import picture_values

        pictures = np.empty((len(numbers), 3, self.rows, self.columns), np.float32)
        for picture, number in zip(pictures, numbers):
            values = picture_values(self.paths[number], 3, (self.columns, self.rows), "stretch")
            picture[...] = values.transpose(2, 0, 1) / 255
        return pictures


def picture_folder(folder: str | Path, rows: int, columns: int) -> tuple[PictureFiles, np.ndarray, tuple[str, ...]]:
    """Return the pictures below a folder that has a folder for each class.

    Parameters
        rows, columns: size to which each picture is stretched
    Returns
        the pictures, in the order of the names; the class of each, int32; the names of the classes
    Raises
        InputError: there are no pictures in folders of the folder

    Example
        pictures, classes, names = nn.picture_folder("flowers/train", 64, 64)
        nn.Loader((pictures, classes), batch=32, prefetch=2)
    """
    from cgraph.formats.pictures import ENDINGS  # `import nn` loads no file format

    files = {x.name: files_below(x, ENDINGS) for x in sorted(Path(folder).iterdir()) if x.is_dir()}
    files = {name: paths for name, paths in files.items() if paths}
    if not files:
        raise InputError(f"{folder} has no folder of pictures ({', '.join(ENDINGS)}). Make one for each class.")
    counts = [len(paths) for paths in files.values()]
    classes = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    return PictureFiles(tuple(x for paths in files.values() for x in paths), rows, columns), classes, tuple(files)


def files_below(folder: Path, endings: Collection[str]) -> list[Path]:
    """Return the paths of all files below a folder whose names have one of the endings, in order."""
    return sorted(x for x in folder.rglob("*") if x.suffix.lower() in endings and x.is_file())
