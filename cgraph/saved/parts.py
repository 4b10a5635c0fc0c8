"""The files of a saved function for one target, checked before use."""

import itertools
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.kernels.code_image import ADDRESS_BYTES, Image
from cgraph.saved.folder import Folder
from cgraph.saved.layout import IMAGES, PAGE, STATE, constants_file, image_file, program_file, sum_of, weights_file
from cgraph.saved.manifest import FileArrays, Manifest, get, is_size, items, malformed
from cgraph.system.alignment import aligned_memory, round_up
from cgraph.system.file_ownership import Stamp

Files = Mapping[str, np.ndarray] | Folder


class Parts:
    """The files of one target, checked against the sizes and checksums of the manifest.

    Parameters
        verify: the constants are checked, too
        in_memory: the constants are copied, not mapped
    Fields
        constants: the file of the constants that stay in memory
        weights: the file of the constants that go through a ring; empty without a ring
        places: offset and bytes of each of them
        ring: path and stamp of that file, and bytes of the ring; None if the weights stay in memory
        is_verified: the constants were checked; pieces that a run reads through a ring are compared with checksums
    """

    def __init__(self, files: Files, manifest: Manifest, target: str, verify: bool, in_memory: bool) -> None:
        self.manifest, self.target = manifest, target
        self.entry = get(get(manifest.entries, "targets", dict), target, dict)
        data, images = constants_file(target), [image_file(x, target) for x in IMAGES]
        ring, streamed = self.entry.get("ring"), weights_file(target)
        large = (data,) if ring is None else (data, streamed)
        names = (STATE, program_file(target), *large, *images)
        sums = manifest.files
        self.files = {name: check_file(name, files[name], sums, verify or name not in large) for name in names}
        for name in large if in_memory else ():
            self.files[name] = in_memory_of(self.files[name])
        self.constants, self.weights = self.files[data], self.files.get(streamed, np.zeros(0, np.uint8))
        nbytes, self.places = (0, []) if ring is None else places_of(ring, len(self.weights))
        self.is_verified = verify
        self.ring: tuple[str, Stamp, int] | None = None
        if nbytes and isinstance(files, Folder) and not in_memory:
            self.ring = os.path.join(files.path, streamed), files.stamp(streamed), nbytes
        self.arrays = FileArrays(self.files[program_file(target)], get(self.entry, "arrays", dict))

    def image(self, name: str) -> Image:
        """Return machine code as an image."""
        code = self.files[image_file(name, self.target)]
        inner = self.arrays.get(f"{name}.inner", "<i8", -1, 2, below=max(len(code), 1))
        starts = self.arrays.get(f"{name}.starts", "<i8", -1, below=max(len(code), 1))
        outer = [items(x, 3) for x in get(self.entry, f"{name}.outer", list)]
        if any(type(f) is not str or not is_size(at) or not is_addend(plus) for f, at, plus in outer):
            raise malformed("addresses of C functions")
        last = len(code) - ADDRESS_BYTES
        if any(at > last for _, at, _ in outer) or (inner.size and inner[:, 0].max() > last):
            raise malformed("addresses outside of the code")
        symbols = {str(i): start for i, start in enumerate(starts.tolist())}
        return Image(code, symbols, inner, tuple((f, at, plus) for f, at, plus in outer))


def check_file(name: str, raw: np.ndarray, sums: Mapping[str, Any], summed: bool) -> np.ndarray:
    """Return a file. FormatError unless it has the size in the manifest and, if `summed`, its checksum."""
    nbytes, crc = items(sums.get(name), 2)
    if len(raw) != nbytes:
        raise FormatError(f"{name} has {len(raw)} bytes, {nbytes} were saved. Save the function again")
    if summed and sum_of([raw]) != crc:
        raise FormatError(f"{name} is not what was saved. Save the function again")
    return raw


def places_of(ring: Any, size: int) -> tuple[int, list[tuple[int, int]]]:
    """Return a ring's bytes, and start and bytes of each of its pieces in a file of `size` bytes."""
    nbytes, entries = items(ring, 2)
    places = [tuple(items(x, 2)) for x in entries] if type(entries) is list else []
    if not places or not is_size(nbytes) or not all(map(is_size, itertools.chain(*places))):
        raise malformed("ring")
    if any(start % PAGE or start + round_up(length, PAGE) > size for start, length in places):
        raise malformed("weights outside of their file")
    return nbytes, places


def is_addend(x: object) -> bool:
    """Return True for an integer that may be added to the address of a function."""
    return type(x) is int and abs(x) < 2**31


def in_memory_of(raw: np.ndarray) -> np.ndarray:
    """Return an aligned copy, as kernels need constants."""
    copy = aligned_memory(len(raw))
    copy[...] = raw
    return copy
