"""Reading a Keras file that nobody vouches for: in a process of its own, with bounded memory and time.

The HDF5 library is written in C and has been made to crash by crafted files. Here only the child can crash; it hands
back where arrays lie, and those that do not lie in the file as they are, which is checked again.
"""

import json
import math
import os
import resource
import signal
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from cgraph.errors import CgraphError, FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.json_text import parse_json
from cgraph.formats.keras_h5 import Contents, KerasFile, StoredArray, read_contents
from cgraph.formats.mapped import map_file
from cgraph.system.child_processes import run_module
from cgraph.terminal import complain

SECONDS = 60
MEMORY, TIMES = 2 << 30, 4  # bytes of address space: so many, and so many for each of the file's
PROCESSOR, PIECE = 10, 64 << 20  # seconds of the processor, and bytes of the file for one more
SENT, SENT_TIMES = 1 << 20, 4  # bytes that the child may hand back
NUMBERS = "biuf"


def read_keras_apart(path: str | Path, seconds: float = SECONDS) -> KerasFile:
    """As `read_keras`, in a child process. What lies in the file as it is, is not handed over but mapped here.

    Raises
        FormatError: as `read_keras`; or the child crashed, took too long, or needed too much memory
    """
    data = map_file(path)
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as complaint:
        status = run_module("cgraph.formats.keras_apart", [os.path.abspath(path)], answer, complaint, seconds)
        if status is None:
            raise FormatError(f"{path}: reading it took more than {seconds} s")
        if status < 0:
            raise FormatError(f"{path}: reading it ended by {signal.Signals(-status).name}")
        if status:
            raise FormatError(f"{path}: {last_line(complaint)}")
        try:
            return receive(answer, Allowance(len(data))).file(data)
        except FormatError as error:
            raise FormatError(f"{path}: {error}") from None


def last_line(file: IO[bytes]) -> str:
    """What the child says last."""
    file.seek(max(file.seek(0, os.SEEK_END) - 1000, 0))
    lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "reading it failed"


def send(contents: Contents, out: IO[bytes]) -> None:
    """Write the length of a JSON text, the text, and the arrays that do not lie in the file as they are."""
    rows: list[list[Any]] = []
    for key, x in contents.arrays.items():
        dtype, offset = (x.dtype, x.offset) if isinstance(x, StoredArray) else (x.dtype.str, None)
        rows.append([*key, dtype, list(x.shape), offset])
    text = json.dumps({"config": contents.config, "arrays": rows}).encode()
    out.write(len(text).to_bytes(8, "little") + text)
    for x in contents.arrays.values():
        if not isinstance(x, StoredArray):
            out.write(np.ascontiguousarray(x).data)


def receive(file: IO[bytes], allowance: Allowance) -> Contents:
    """What the child has written, checked: it read a file that nobody vouches for."""
    file.seek(0)
    length = int.from_bytes(file.read(8), "little")
    if length > SENT + SENT_TIMES * allowance.file_nbytes:
        raise FormatError("the reader handed back too much")
    description = parse_json(file.read(length), allowance, "its description")
    arrays: dict[tuple[str, str], StoredArray | np.ndarray] = {}
    try:
        for layer, name, code, shape, offset in description["arrays"]:
            dtype = np.dtype(code)
            if dtype.kind not in NUMBERS or min(shape, default=0) < 0 or not isinstance(offset, int | None):
                raise FormatError(f"the reader handed back {code!r:.40} {shape!r:.40}")
            if offset is not None:
                arrays[layer, name] = StoredArray(offset, code, tuple(shape))
                continue
            allowance.spend("an array", nbytes=math.prod(shape) * dtype.itemsize)
            x = np.empty(shape, dtype)
            if file.readinto(x.reshape(-1).view(np.uint8)) != x.nbytes:  # type: ignore[attr-defined]
                raise FormatError("the reader handed back too little")
            arrays[layer, name] = x
        return Contents(description["config"], arrays)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise FormatError(f"the reader handed back something else: {error}") from error


def limit_memory(nbytes: int) -> None:
    """Take no more address space than this, or than somebody has allowed already."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = nbytes if hard == resource.RLIM_INFINITY else min(nbytes, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def limit_processor(seconds: int) -> None:
    """Compute for no more seconds than these, or than somebody has allowed already."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    most = seconds if hard == resource.RLIM_INFINITY else min(seconds, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (most, hard))


def main() -> int:
    """The child: read the named file, write what is in it to the standard output."""
    path = sys.argv[1]
    nbytes = os.stat(path).st_size
    limit_memory(MEMORY + TIMES * nbytes)
    limit_processor(PROCESSOR + nbytes // PIECE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        send(read_contents(path), sys.stdout.buffer)
    except (CgraphError, MemoryError) as error:
        complain(error or "it needs too much memory")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
