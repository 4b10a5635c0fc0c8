"""The files of a saved function for one target, looked at before they are used."""

from collections.abc import Mapping

import numpy as np

from cgraph.alignment import aligned_memory
from cgraph.errors import FormatError
from cgraph.kernels.image import ADDRESS_BYTES, Image
from cgraph.saved.folder import Folder
from cgraph.saved.layout import IMAGES, STATE, constants_file, image_file, program_file, sum_of
from cgraph.saved.manifest import Arrays, Manifest, get, is_size, items, malformed

Files = Mapping[str, np.ndarray] | Folder


class Parts:
    """The files of one target: of the size that the manifest says, and with its sum.

    Fields
        verify: the constants are summed, too
        in_memory: the constants are copied, not mapped
    """

    def __init__(self, files: Files, manifest: Manifest, target: str, verify: bool, in_memory: bool) -> None:
        self.manifest, self.target = manifest, target
        self.entry = get(get(manifest.entries, "targets", dict), target, dict)
        data, images = constants_file(target), [image_file(x, target) for x in IMAGES]
        names = (STATE, program_file(target), data, *images)
        self.files = {name: self.checked(name, files[name], verify or name != data) for name in names}
        if in_memory:
            self.files[data] = in_memory_of(self.files[data])
        self.constants = self.files[data]
        self.arrays = Arrays(self.files[program_file(target)], get(self.entry, "arrays", dict))

    def checked(self, name: str, raw: np.ndarray, summed: bool) -> np.ndarray:
        nbytes, crc = items(self.manifest.files.get(name), 2)
        if len(raw) != nbytes:
            raise FormatError(f"{name} has {len(raw)} bytes, {nbytes} were saved")
        if summed and sum_of([raw]) != crc:
            raise FormatError(f"{name} is not what was saved")
        return raw

    def image(self, name: str) -> Image:
        """Machine code."""
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


def is_addend(x: object) -> bool:
    """What may be added to the address of a function."""
    return type(x) is int and abs(x) < 2**31


def in_memory_of(raw: np.ndarray) -> np.ndarray:
    """A copy that begins where kernels want constants to."""
    found = aligned_memory(len(raw))
    found[...] = raw
    return found
