"""Files that attack their reader: a refusal must be typed, and must cost little memory."""

import tracemalloc
from pathlib import Path

import pytest

from cgraph.errors import CgraphError, FormatError

ROOM = 64 << 20  # bytes, beside twice the file's size


def refused(read, path, match=None):
    """`read(path)` raises FormatError, and allocates no more than twice the file and ROOM."""
    with limited(path), pytest.raises(FormatError, match=match):
        read(path)


def harmless(read, path):
    """`read(path)` gives a result or a typed error, and allocates no more than twice the file and ROOM."""
    with limited(path):
        try:
            read(path)
        except CgraphError:
            return


class limited:
    """Within, no more than twice the file and `room` is allocated at once."""

    def __init__(self, path, room=ROOM):
        self.most = 2 * (Path(path).stat().st_size if isinstance(path, Path) else len(path)) + room

    def __enter__(self):
        tracemalloc.start()

    def __exit__(self, *_):
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak <= self.most, f"{peak} bytes were allocated, {self.most} are allowed"


def flipped(raw, flips):
    """Bytes with some of them changed: pairs of a position (as a share of the length) and a mask."""
    found = bytearray(raw)
    for share, mask in flips:
        found[int(share * (len(found) - 1))] ^= mask
    return bytes(found)
