"""Reader of the archives that Keras 3 writes (``.keras``): ``config.json`` and ``model.weights.h5`` in a zip file.

No code of a file is run. The weights are read from the mapped file, so only arrays that are compressed are copied.
An archive names a layer's arrays by number: ``layers/conv2d_1/vars/0`` is the first array of the second Conv2D layer.

Source: ``saving_lib.py`` of Keras 3, for the names and their order.
"""

import io
from pathlib import Path
from typing import Any

from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.json_text import parse_json
from cgraph.formats.keras_h5 import (
    UNREADABLE,
    Contents,
    KerasFile,
    datasets,
    import_h5py,
    read_contents,
    stored_or_read,
)
from cgraph.formats.mapped import map_file
from cgraph.formats.zip_archive import DEFLATED, members_of, unpack

__all__ = ["read_keras_model"]

MAGIC = b"PK\x03\x04"
CONFIG, WEIGHTS = "config.json", "model.weights.h5"


def read_keras_model(path: str | Path) -> KerasFile:
    """Read a network that Keras saved, as an HDF5 file or an archive.

    Raises
        FormatError: as `read_keras`; or the archive is damaged, or lacks its description or weights
        UnavailableError: h5py is not installed
    """
    data = map_file(path)
    try:
        return model_contents(path).file(data)
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None


def model_contents(path: str | Path) -> Contents:
    """Return the contents of a file. FormatError as in `read_keras_model`, without the path."""
    data = map_file(path)
    return archive_contents(data) if data[: len(MAGIC)] == MAGIC else read_contents(path)


def archive_contents(data: memoryview) -> Contents:
    """Return the contents of a mapped archive."""
    h5py = import_h5py()
    allowance = Allowance(len(data))
    members = members_of(data, allowance)
    for name in (CONFIG, WEIGHTS):
        if name not in members:
            raise FormatError(f"the archive has no member {name!r}. Save the network with Keras 3")
        if members[name].method == DEFLATED:
            allowance.spend(f"member {name!r}", nbytes=members[name].nbytes)
    config = parse_json(bytes(unpack(data, members[CONFIG])), allowance, CONFIG)
    member = members[WEIGHTS]
    start = None if member.method == DEFLATED else member.place.start
    try:
        with h5py.File(MappedFile(unpack(data, member)), "r") as file:
            start = None if file.userblock_size else start
            arrays = {
                numbered_key(path): stored_or_read(path, dataset, start, allowance, h5py)
                for path, dataset in datasets(file, allowance, h5py)
            }
    except FormatError:
        raise
    except UNREADABLE as error:
        raise FormatError(f"{WEIGHTS} is not a readable HDF5 file: {error}") from error
    return Contents(config, arrays, numbered=True)


def numbered_key(path: str) -> tuple[str, str]:
    """Return the group and number of an array: ``layers/conv2d_1`` and ``0`` of ``layers/conv2d_1/vars/0``."""
    group, _, number = path.rpartition("/")
    return group.removesuffix("/vars"), number


class MappedFile(io.RawIOBase):
    """Bytes in memory as a file that HDF5 reads; no byte is copied before it is read."""

    def __init__(self, data: memoryview) -> None:
        self.data, self.at = data, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self.at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: len(self.data)}[whence]
        return self.at

    def readinto(self, buffer: Any) -> int:
        """Read bytes into a buffer; fewer at the end."""
        piece = self.data[self.at : self.at + len(buffer)]
        buffer[: len(piece)] = piece
        self.at += len(piece)
        return len(piece)


def __dir__() -> list[str]:
    return __all__
