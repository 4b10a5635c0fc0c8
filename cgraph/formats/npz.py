"""npz: arrays in a zip archive, read without pickle and without trusting what the archive declares.

Every member is checked before its bytes are read: its name, compression and declared sizes, that no two members share
bytes of the file, that the array's shape and dtype need exactly the member's bytes. An archive that declares far more
than it stores is taken for a bomb. Format: numpy.lib.format.
"""

import io
import zipfile
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from cgraph.errors import FormatError

LARGEST = 4 << 30  # bytes of all arrays
SMALL = 64 << 20  # bytes; below it any ratio is fine
BOMB = 100  # times as many bytes declared as stored
LONGEST_HEADER = 10_000
ENCRYPTED = 1


def read_npz(path: str | Path, largest: int = LARGEST) -> dict[str, np.ndarray]:
    """Arrays by name.

    Parameters
        largest: bytes that all arrays may need together
    Raises
        FormatError: the file is no npz file, holds objects, or declares sizes that do not fit
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            check_members(members, Path(path).stat().st_size, largest)
            return {name_of(member): member_array(archive, member) for member in members}
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        raise FormatError(f"{path}: {error}") from None
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None


def name_of(member: zipfile.ZipInfo) -> str:
    return member.filename.removesuffix(".npy")


def check_members(members: list[zipfile.ZipInfo], nbytes: int, largest: int) -> None:
    """FormatError unless names, sizes and places of all members are sound."""
    names = [member.filename for member in members]
    if len(set(names)) != len(names):
        raise FormatError("two members have one name")
    for member in members:
        if not member.filename.endswith(".npy") or member.flag_bits & ENCRYPTED:
            raise FormatError(f"member {member.filename!r:.80} is no plain .npy file")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise FormatError(f"member {member.filename!r:.80} is compressed by an unknown method")
        if member.compress_type == zipfile.ZIP_STORED and member.file_size != member.compress_size:
            raise FormatError(
                f"member {member.filename!r:.80} declares {member.file_size}, {member.compress_size} are stored"
            )
    declared, stored = (sum(getattr(m, key) for m in members) for key in ("file_size", "compress_size"))
    if declared > largest or (declared > SMALL and declared > BOMB * stored):
        raise FormatError(
            f"{declared} bytes are declared, {stored} stored; at most {largest}, and {BOMB} times, are read"
        )
    at = 0
    for member in sorted(members, key=lambda m: m.header_offset):
        if member.header_offset < at or member.header_offset + member.compress_size > nbytes:
            raise FormatError(f"member {member.filename!r:.80} shares bytes with another, or lies outside the file")
        at = member.header_offset + member.compress_size


def member_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """One member as an array, read once its header is known to fit."""
    with archive.open(member) as file:
        shape, fortran, dtype, length = npy_header(file, member.filename)
        need = prod(shape) * dtype.itemsize
        if need != member.file_size - length:
            raise FormatError(
                f"member {member.filename!r:.80} {dtype}{list(shape)} needs {need} bytes, "
                f"{member.file_size - length} are declared"
            )
        found = np.empty(prod(shape), dtype)
        into: Any = found.view(np.uint8)
        at = 0
        while at < need:
            count = file.readinto(into[at:])  # type: ignore[attr-defined]
            if not count:
                raise FormatError(f"member {member.filename!r:.80} ends after {at} of {need} bytes")
            at += count
        if file.read(1):
            raise FormatError(f"member {member.filename!r:.80} has more than the {need} bytes it declares")
    return found.reshape(shape, order="F" if fortran else "C")


def npy_header(file: Any, name: str) -> tuple[tuple[int, ...], bool, np.dtype, int]:
    """Shape, order, dtype, and the header's bytes. FormatError for objects and what cannot be."""
    try:
        version = np.lib.format.read_magic(file)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        counted: Any = CountedReader(file)
        shape, fortran, dtype = read(counted, max_header_size=LONGEST_HEADER)
    except (ValueError, KeyError, TypeError, SyntaxError, RecursionError, MemoryError, EOFError) as error:
        raise FormatError(f"member {name!r:.80} has no header of a .npy file: {error!r:.120}") from None
    if dtype.hasobject or dtype.names or dtype.kind not in "biufc":
        raise FormatError(f"member {name!r:.80} holds {dtype}; only numbers are read")
    if any(n < 0 for n in shape) or prod(n for n in shape if n) * dtype.itemsize >= 2**63:
        raise FormatError(f"member {name!r:.80} has the impossible shape {list(shape)}")
    return shape, fortran, dtype, counted.count + len(np.lib.format.MAGIC_PREFIX) + 2


class CountedReader:
    """Reads from a file and counts. Changes: `count` grows."""

    def __init__(self, file: Any) -> None:
        self.file, self.count = file, 0

    def read(self, size: int) -> bytes:
        found = self.file.read(size)
        self.count += len(found)
        return found


def write_npz(path: str | Path, arrays: dict[str, Any]) -> None:
    """Write arrays by name, uncompressed, so that the same arrays give the same bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, x in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.asarray(x), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), buffer.getvalue())
