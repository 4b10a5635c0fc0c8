"""Tables of machine code that are built when cgraph is installed: one file for each target.

A file begins with the length of its index, eight bytes; the index is JSON: the version of LLVM that compiled the code,
and the place of each kernel by its name (`cgraph.kernels.store.prebuilt_name`). Then follows the code, each kernel
compressed by itself. Such a file is part of the installed package, as trusted as the package's Python files.
"""

import hashlib
import json
import mmap
import os
import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from cgraph.kernels.target import Target
from cgraph.record import Record

FOLDER = Path(__file__).parent / "tables"
LENGTH = 8  # bytes


class KernelTable(Record, eq=False):
    """The kernels of one file.

    Fields
        memory: the file, mapped, so that a new file in its place changes nothing
        version: of the LLVM that compiled them
        places: first byte and number of bytes of each, by name
    """

    memory: mmap.mmap
    version: str
    places: Mapping[str, tuple[int, int]]

    def read(self, name: str) -> bytes | None:
        """Return a kernel's object code; None if it is absent or damaged."""
        if name not in self.places:
            return None
        first, nbytes = self.places[name]
        try:
            return zlib.decompress(self.memory[first : first + nbytes])
        except zlib.error:
            return None


def path_of(target: Target) -> Path:
    """Return the file with the kernels of a target."""
    digest = hashlib.sha256(repr(target).encode()).hexdigest()[:12]
    return FOLDER / f"{'-'.join(filter(None, (target.name, target.tuning, target.tiles)))}-{digest}.kernels"


@cache
def table_of(target: Target) -> KernelTable | None:
    """Return the table of a target; None if none was built, or the file is damaged."""
    return opened_table(path_of(target))


def opened_table(path: Path) -> KernelTable | None:
    """Return the table in a file; None if there is none, or the file is damaged."""
    try:
        with open(path, "rb") as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        begin = LENGTH + int.from_bytes(memory[:LENGTH], "little")
        index = json.loads(memory[LENGTH:begin])
        places = {name: (begin + first, nbytes) for name, (first, nbytes) in index["kernels"].items()}
        return KernelTable(memory, index["version"], places)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return None


def write_table(path: Path, version: str, code: Mapping[str, bytes]) -> None:
    """Write the object code of kernels by name, in one step: another process sees the old file or the new one."""
    parts = {name: zlib.compress(raw, 9) for name, raw in sorted(code.items())}
    places, first = {}, 0
    for name, part in parts.items():
        places[name] = first, len(part)
        first += len(part)
    index = json.dumps({"version": version, "kernels": places}).encode()
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}")
    try:
        temporary.write_bytes(b"".join((len(index).to_bytes(LENGTH, "little"), index, *parts.values())))
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
