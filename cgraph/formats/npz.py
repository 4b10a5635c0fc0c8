"""Reader and writer of npy and npz files: an array, and arrays in a zip archive. No pickle is read.

Each member is checked before its bytes are read: its name, compression, declared sizes and position, and that the
shape and dtype of the array need exactly the bytes of the member. Uncompressed arrays stay in the mapped file.
Compressed and unaligned ones are copied, in no more memory than a file of its size may cost, unless the caller allows
more. Format: numpy.lib.format.
"""

import io
import re
import zipfile
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from cgraph.errors import FormatError, bytes_text, damaged_file
from cgraph.formats.allowance import Allowance
from cgraph.formats.mapped import map_file
from cgraph.formats.zip_archive import STORED, Member, members_of, unpack
from cgraph.ir.spec import LARGEST
from cgraph.kernels.mapped import aligned
from cgraph.system.byte_counts import byte_count
from cgraph.system.files import replace_file

__all__ = ["read_npy", "read_npz", "write_npz"]

LARGEST_FILE = 4 << 30  # bytes of all arrays
LONGEST_HEADER = 10_000
MOST_AXES = 64
MAGIC = b"\x93NUMPY"
LENGTHS = {MAGIC + b"\1\0": 2, MAGIC + b"\2\0": 4}  # bytes of the header's length, by version
NUMBER = r"-?\d{1,20}"
HEADER = re.compile(
    r"\{'descr': '(?P<dtype>[<>|=]?\w+)', 'fortran_order': (?P<order>True|False), "
    rf"'shape': \((?P<shape>(?:{NUMBER}L?, ?)*(?:{NUMBER}L?)?)\),? ?\}}\s*"
)


def read_npz(path: str | Path, largest: int | str | None = None) -> dict[str, np.ndarray]:
    """Read arrays by name. They are read-only and mapped, except compressed and unaligned ones.

    Parameters
        largest: bytes of all arrays together, a number or text such as ``"6GiB"``. By default 4 GiB, of which copied
            arrays may take twice the file size and 64 MiB
    Raises
        ArgumentError: `largest` is not a number of bytes
        FormatError: the file is not an npz file, holds objects, or declares sizes that do not fit
    """
    most = None if largest is None else byte_count(largest)
    data = map_file(path)
    try:
        allowance = Allowance(len(data))
        members = members_of(data, allowance)
        check_sizes(list(members.values()), LARGEST_FILE if most is None else most)
        if most is not None:
            allowance.nbytes += most
        return {name.removesuffix(".npy"): member_array(data, member, allowance) for name, member in members.items()}
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None


def check_sizes(members: list[Member], largest: int) -> None:
    """Raise FormatError unless all members are arrays and their declared sizes are within `largest`."""
    for member in members:
        if not member.name.endswith(".npy"):
            raise FormatError(f"member {member.name!r:.80} is not a .npy file. Write the archive with np.savez")
    declared = sum(m.nbytes for m in members)
    if declared > largest:
        raise FormatError(
            f"it declares {bytes_text(declared)}; at most {bytes_text(largest)} are read. Raise largest= to read more"
        )


def read_npy(path: str | Path) -> np.ndarray:
    """Read the array of a .npy file; it is read-only, and mapped if it is aligned.

    Raises
        FormatError: the file is not a .npy file, holds objects, or declares sizes that do not fit
    """
    data = map_file(path)
    try:
        return parse_npy(data, "the file", Allowance(len(data)))
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None


def member_array(data: memoryview, member: Member, allowance: Allowance) -> np.ndarray:
    """Return a member as an array."""
    label = f"member {member.name!r:.80}"
    if member.method != STORED:
        allowance.spend(f"{label} (largest= allows more)", nbytes=member.nbytes)
    return parse_npy(unpack(data, member), label, allowance)


def parse_npy(body: memoryview, label: str, allowance: Allowance) -> np.ndarray:
    """Return the array of a .npy file from its bytes; errors name `label`."""
    shape, dtype, fortran, start = npy_header(body, label)
    need = prod(shape) * dtype.itemsize
    if need != len(body) - start:
        raise damaged_file(f"{label} {dtype}{list(shape)} needs {need} bytes, {len(body) - start} are stored")
    array = np.frombuffer(body[start:], dtype)
    if not array.flags.aligned:
        allowance.spend(f"{label} (largest= allows more)", nbytes=array.nbytes)
    return aligned(array).reshape(shape, order="F" if fortran else "C")


def npy_header(body: memoryview, label: str) -> tuple[tuple[int, ...], np.dtype, bool, int]:
    """Parse a header: shape, dtype, whether the order is Fortran's, and the offset of the data.

    The header is the text of a Python dictionary. Only NumPy's own spelling is accepted, and nothing is evaluated.
    FormatError for any other header, and for a dtype other than numbers.
    """
    width = LENGTHS.get(bytes(body[: len(MAGIC) + 2]), 0)
    start = len(MAGIC) + 2 + width
    length = int.from_bytes(body[start - width : start], "little")
    if not width or not 0 < length <= min(LONGEST_HEADER, len(body) - start):
        raise FormatError(f"{label} has no header of a .npy file. Save it with numpy.save")
    text = str(body[start : start + length], "latin1")
    match = HEADER.fullmatch(text)
    if match is None:
        raise FormatError(f"{label} has the header {text!r:.120}; only numbers are read. Save it with numpy.save")
    shape = tuple(int(n) for n in re.findall(NUMBER, match["shape"]))
    return *check_header(shape, match["dtype"], label), match["order"] == "True", start + length


def check_header(shape: tuple[int, ...], code: str, label: str) -> tuple[tuple[int, ...], np.dtype]:
    """Return the shape and dtype of an array. FormatError if no array can have them."""
    try:
        dtype = np.dtype(code)
    except (TypeError, ValueError):
        raise FormatError(f"{label} holds {code!r:.40}, which is not a dtype") from None
    if dtype.hasobject or dtype.names or dtype.kind not in "biufc":
        raise FormatError(f"{label} holds {dtype!s:.80}; only numbers are read. Convert it with astype")
    if len(shape) > MOST_AXES or min(shape, default=0) < 0 or prod(n for n in shape if n) * dtype.itemsize > LARGEST:
        raise damaged_file(f"{label} has the impossible shape {list(shape)!s:.80}")
    return shape, dtype


def write_npz(path: str | Path, arrays: dict[str, Any]) -> None:
    """Write arrays by name, uncompressed, in one atomic step; the same arrays give the same bytes."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as file:
        for name, x in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.asarray(x), allow_pickle=False)
            file.writestr(zipfile.ZipInfo(f"{name}.npy"), buffer.getvalue())
    replace_file(path, [archive.getbuffer()])


def __dir__() -> list[str]:
    return __all__
