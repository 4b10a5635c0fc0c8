"""Reader of untrusted Keras files in a child process with bounded memory and time.

Crafted files have crashed the HDF5 library, which is written in C. Here only the child can crash. It returns the
positions of arrays and the contents of compressed ones, and the parent checks both.
"""

import json
import math
import os
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from cgraph.errors import CgraphError, FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.json_text import parse_json
from cgraph.formats.keras_archive import model_contents
from cgraph.formats.keras_h5 import Contents, KerasFile, StoredArray
from cgraph.formats.mapped import map_file
from cgraph.system.child_processes import ending_of, run_module
from cgraph.system.limits import limit_process
from cgraph.terminal import complain

SECONDS = 60
MEMORY, TIMES = 2 << 30, 4  # bytes of address space, and further bytes for each byte of the file
PROCESSOR, PIECE = 10, 64 << 20  # seconds of processor time, and bytes of the file for one second more
SENT, SENT_TIMES = 1 << 20, 4  # bytes that the child may return, and further bytes for each byte of the file
NUMBERS = "biuf"


def read_keras_apart(path: str | Path, seconds: float = SECONDS) -> KerasFile:
    """Read a Keras file as `read_keras_model` does, in a child process. Uncompressed arrays are mapped, not copied.

    Raises
        FormatError: as `read_keras_model`; or the child crashed, took too long or needed too much memory
        OSError: no child process can be started
    """
    data = map_file(path)
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as complaint:
        status = run_module("cgraph.formats.keras_apart", [os.path.abspath(path)], answer, complaint, seconds)
        if status is None:
            raise FormatError(f"{path}: reading it took more than {seconds} s. Raise seconds= for a larger file")
        ending = ending_of(status)
        if ending:
            raise FormatError(f"{path}: reading it ended by {ending}: the file is damaged or too large")
        if status:
            raise FormatError(f"{path}: {last_line(complaint)}")
        try:
            return receive(answer, Allowance(len(data))).file(data)
        except FormatError as error:
            raise FormatError(f"{path}: {error}") from None


def last_line(file: IO[bytes]) -> str:
    """Return the last line that the child printed."""
    file.seek(max(file.seek(0, os.SEEK_END) - 1000, 0))
    lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "reading it failed"


def send(contents: Contents, out: IO[bytes]) -> None:
    """Write the length of a JSON text, the text, and the arrays that cannot be mapped."""
    rows: list[list[Any]] = []
    for key, x in contents.arrays.items():
        dtype, offset = (x.dtype, x.offset) if isinstance(x, StoredArray) else (x.dtype.str, None)
        rows.append([*key, dtype, list(x.shape), offset])
    text = json.dumps({"config": contents.config, "arrays": rows, "numbered": contents.numbered}).encode()
    out.write(len(text).to_bytes(8, "little") + text)
    for x in contents.arrays.values():
        if not isinstance(x, StoredArray):
            out.write(np.ascontiguousarray(x).data)


def receive(file: IO[bytes], allowance: Allowance) -> Contents:
    """Read and check the output of the child, which has read an untrusted file."""
    file.seek(0)
    length = int.from_bytes(file.read(8), "little")
    if length > SENT + SENT_TIMES * allowance.file_nbytes:
        raise FormatError(
            f"the reader returned a description of {length:,} bytes, too many for a file of {allowance.file_nbytes:,}"
        )
    description = parse_json(file.read(length), allowance, "its description")
    arrays: dict[tuple[str, str], StoredArray | np.ndarray] = {}
    try:
        for layer, name, code, shape, offset in description["arrays"]:
            dtype = np.dtype(code)
            if dtype.kind not in NUMBERS or min(shape, default=0) < 0 or not isinstance(offset, int | None):
                raise FormatError(f"the reader returned an array {code!r:.40} of shape {shape!r:.40}, which cannot be")
            if offset is not None:
                arrays[layer, name] = StoredArray(offset, code, tuple(shape))
                continue
            allowance.spend("an array", nbytes=math.prod(shape) * dtype.itemsize)
            x = np.empty(shape, dtype)
            if file.readinto(x.reshape(-1).view(np.uint8)) != x.nbytes:  # type: ignore[attr-defined]
                raise FormatError(f"the reader returned fewer than the {x.nbytes:,} bytes of {name} of layer {layer}")
            arrays[layer, name] = x
        return Contents(description["config"], arrays, bool(description["numbered"]))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise FormatError(f"the reader returned a malformed description: {error}") from error


def main() -> int:
    """Run the child: read the named file and write its contents to the standard output."""
    path = sys.argv[1]
    nbytes = os.stat(path).st_size
    limit_process(MEMORY + TIMES * nbytes, PROCESSOR + nbytes // PIECE)
    try:
        send(model_contents(path), sys.stdout.buffer)
    except (CgraphError, MemoryError) as error:
        complain(str(error) or "it needs too much memory")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
