"""Numba's cache of compiled functions, only where nobody else can write: it is read as a pickle, which runs code."""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numba

from cgraph.kernels.cache import cache_folder
from cgraph.system.file_ownership import is_closed, open_folder


def compile_cached(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called, and keep its code on disk.

    Beside the source, as Numba does, where only the user can write there; else in a cache folder of ours; without
    either nowhere. A folder that the user gives Numba (``NUMBA_CACHE_DIR``) is under the same rule.

    Without reference counting: nothing compiled here allocates and the caller holds every array. Counting them took
    four fifths of the time.
    """
    njit: Any = partial(numba.njit, nogil=True, _nrt=False)
    config: Any = numba.config
    before = config.CACHE_DIR
    if is_private(before or os.path.dirname(function.__code__.co_filename)):
        return njit(function, cache=True)
    folder = cache_folder("numba")
    if folder is None:
        return njit(function)
    config.CACHE_DIR = str(folder)
    try:
        return njit(function, cache=True)
    finally:
        config.CACHE_DIR = before


def is_private(path: str) -> bool:
    """Return True for a folder of the user's, and its own cache in it, that nobody else can write or rename."""
    try:
        places = [open_folder(os.path.realpath(path))]
        beside = os.path.join(os.path.realpath(path), "__pycache__")
        if os.path.lexists(beside):
            places.append(open_folder(beside))
    except OSError:
        return False
    handles = [handle for handle in places if handle is not None]
    try:
        return len(handles) == len(places) and all(is_closed(os.fstat(handle)) for handle in handles)
    finally:
        for handle in handles:
            os.close(handle)
