"""Numba's cache of compiled functions, in a folder that only this user can write: loading a pickle runs code."""

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numba

from cgraph.kernels.cache import cache_folder


def compile_cached(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call, and store its code on disk.

    The code is stored in a cache folder of the user's, under a hash of all sources next to the function: Numba compares
    only the function's own file, and its pickles name classes of the others. Without such a folder nothing is stored.

    Reference counting is disabled: compiled functions allocate nothing, and the caller keeps every array alive.
    Counting took four fifths of the time.
    """
    njit: Any = partial(numba.njit, nogil=True, _nrt=False)
    folder = cache_folder("numba")
    if folder is None:
        return njit(function)
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder.path / sources_hash(Path(function.__code__.co_filename).parent))
    try:
        return njit(function, cache=True)
    finally:
        config.CACHE_DIR = before


def sources_hash(folder: Path) -> str:
    """Return a hash of the text of all modules in a folder."""
    texts = [path.read_bytes() for path in sorted(folder.glob("*.py"))]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:24]
