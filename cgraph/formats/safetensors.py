"""Reader and writer of safetensors files: a JSON header and named arrays, read without copying.

Layout: the length of the header (8 bytes, little-endian), the header, the arrays one after another. The reader refuses
what the format forbids: a header over 100 MB, ranges that overlap, leave holes or do not end with the file, repeated
names, shapes that do not fit their range. Sources: README of github.com/huggingface/safetensors and its audit by Trail
of Bits. bfloat16 has no NumPy dtype and is widened to float32; 8-bit floats are refused.
"""

import json
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from cgraph.errors import FormatError, damaged_file
from cgraph.formats.allowance import Allowance
from cgraph.formats.json_text import parse_json
from cgraph.formats.mapped import map_file
from cgraph.ir.spec import LARGEST
from cgraph.kernels.mapped import aligned, copy_to
from cgraph.system.files import replace_file

__all__ = ["read_safetensors", "write_safetensors"]

LARGEST_HEADER = 100_000_000
MOST_AXES = 64
DTYPES = {
    "BOOL": "?", "I8": "i1", "U8": "u1", "I16": "<i2", "U16": "<u2", "I32": "<i4", "U32": "<u4", "I64": "<i8",
    "U64": "<u8", "F16": "<f2", "F32": "<f4", "F64": "<f8", "BF16": "<u2",
}  # fmt: skip
NAMES = {np.dtype(code): name for name, code in DTYPES.items() if name != "BF16"}


def read_safetensors(path: str | Path) -> dict[str, np.ndarray]:
    """Read arrays by name. They are read-only views of the mapped file, except bfloat16 and unaligned arrays.

    Raises
        FormatError: the file is not an safetensors file, or breaks one of the rules above
    """
    try:
        return read_arrays(map_file(path))
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None


def read_arrays(data: memoryview) -> dict[str, np.ndarray]:
    """Return the arrays of a mapped file."""
    if len(data) < 8:
        raise FormatError(
            f"{len(data)} bytes are not a safetensors file. Write it with safetensors, or with Function.save_state"
        )
    length = int.from_bytes(data[:8], "little")
    if length > min(LARGEST_HEADER, len(data) - 8):
        raise damaged_file(f"a header of {length} bytes is declared, the file has {len(data)}")
    header = parse_header(bytes(data[8 : 8 + length]), Allowance(len(data)))
    header.pop("__metadata__", None)
    start = 8 + length
    ranges = {name: check_entry(name, entry, len(data) - start) for name, entry in header.items()}
    check_contiguous(list(ranges.values()), len(data) - start)
    arrays = {}
    for name, span in ranges.items():
        span = range(start + span.start, start + span.stop)
        arrays[name] = array_at(data, header[name], span)
    return arrays


def parse_header(raw: bytes, allowance: Allowance) -> dict[str, Any]:
    """Parse the header. FormatError if it is malformed."""
    if not raw.startswith(b"{"):
        raise FormatError(
            f"the header does not begin with an opening brace, but with {bytes(raw[:1])!r}: the file is not "
            "safetensors. "
            "Write it with safetensors, or with Function.save_state"
        )
    return parse_json(raw, allowance, "the header")


def check_entry(name: str, entry: Any, nbytes: int) -> range:
    """Return the range of an array within the data. FormatError unless shape, dtype and range agree."""
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise damaged_file(f"the entry of {name!r:.80} must have the keys dtype, shape and data_offsets")
    shape, offsets, dtype = entry["shape"], entry["data_offsets"], entry["dtype"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise FormatError(f"{name!r:.80} has the dtype {dtype!r:.40}. Use one of {', '.join(DTYPES)}")
    if not is_integers(shape) or len(shape) > MOST_AXES or not is_integers(offsets) or len(offsets) != 2:
        raise damaged_file(
            f"{name!r:.80} has the shape {shape!r:.80} at {offsets!r:.80}; both must be lists of integers"
        )
    begin, end = offsets
    itemsize = np.dtype(DTYPES[dtype]).itemsize
    need = prod(shape) * itemsize
    if prod(n for n in shape if n) * itemsize > LARGEST:
        raise damaged_file(f"{name!r:.80} has the impossible shape {shape!r:.80}")
    if not begin <= end <= nbytes or end - begin != need:
        raise damaged_file(f"{name!r:.80} {dtype}{shape} needs {need} bytes, its range is {begin} to {end} of {nbytes}")
    return range(begin, end)


def is_integers(x: Any) -> bool:
    return isinstance(x, list) and all(type(n) is int and 0 <= n < 2**63 for n in x)


def check_contiguous(ranges: list[range], nbytes: int) -> None:
    """Raise FormatError unless the ranges cover each byte of the data once."""
    at = 0
    for span in sorted(ranges, key=lambda s: (s.start, s.stop)):
        if span.start != at:
            raise damaged_file(f"arrays {'overlap' if span.start < at else 'leave a hole'} at byte {at} of the data")
        at = span.stop
    if at != nbytes:
        raise damaged_file(f"the arrays end at byte {at} of the data, which has {nbytes}")


def array_at(data: memoryview, entry: dict[str, Any], span: range) -> np.ndarray:
    """Return an array as a view of the file; as a copy if it is unaligned or bfloat16."""
    raw = np.frombuffer(data[span.start : span.stop], np.dtype(DTYPES[entry["dtype"]]))
    if entry["dtype"] == "BF16":
        return widen(raw).reshape(entry["shape"])
    return aligned(raw).reshape(entry["shape"])


def widen(raw: np.ndarray) -> np.ndarray:
    """Widen bfloat16 to float32, whose upper half it is."""
    out = np.zeros(raw.size, "<f4")
    copy_to(out.view("<u2")[1::2], raw)
    return out


def write_safetensors(path: str | Path, arrays: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> None:
    """Write arrays by name in one atomic step; an existing file is replaced.

    Raises
        FormatError: the format does not have a dtype
    """
    named = {name: np.ascontiguousarray(x).reshape(np.shape(x)) for name, x in arrays.items()}
    order = sorted(named, key=lambda name: (-named[name].dtype.itemsize, name))  # keeps every element aligned
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    at = 0
    for name in order:
        x = named[name]
        if x.dtype not in NAMES:
            raise FormatError(
                f"{path}: {name!r} is {x.dtype}. Convert it with astype to one of {', '.join(map(str, NAMES))}"
            )
        header[name] = {"dtype": NAMES[x.dtype], "shape": list(x.shape), "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    bodies = [named[name].reshape(-1).view(np.uint8) for name in order]
    replace_file(path, [len(text).to_bytes(8, "little"), text, *bodies])


def __dir__() -> list[str]:
    return __all__
