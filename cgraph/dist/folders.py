"""Functions that are sent to other processes: a saved folder as bytes, or a factory.

The receiver loads it once per process for all threads: concurrent calls share its constants and have an arena each. A
folder is checked before its bytes are sent, as `cgraph.load` checks it; bytes that arrive through dask are trusted like
dask's own pickles.
"""

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from cgraph.errors import InputError
from cgraph.record import Record
from cgraph.running.runner import Runner
from cgraph.saved.folder import Folder
from cgraph.saved.read import load_files
from cgraph.saved.write import bytes_of

MOST_KEPT = 4  # maximum number of functions in a process

Source = Runner | str | os.PathLike | Callable[[], Runner]
"""A function, the folder of a saved one, or a factory."""


class Shipped(Record, eq=False):
    """A function to send.

    Fields
        key: a unique key
        files: files of the saved folder by name; empty for a factory
        make: the factory, called in the process that needs the function; None if there are files
    """

    key: str
    files: dict[str, bytes]
    make: Callable[[], Runner] | None = None

    def opened(self, threads: int) -> Runner:
        """Return the function, with cells of its own. FormatError when this machine or version cannot run it."""
        if self.make is not None:
            return check_function(self.make())
        files = {name: np.frombuffer(raw, np.uint8) for name, raw in self.files.items()}
        return load_files(files, threads=threads, verify=True, in_memory=True)


def ship(source: Source, trust: bool = False) -> Shipped:
    """Prepare a function to be sent.

    Parameters
        trust: send a saved folder even if others may have written it
    Raises
        FormatError: the function cannot be saved (a step is a Python function, it is for a GPU): pass a factory; or
            other users can write the saved folder
        InputError: it is not a function, folder or factory
    """
    if isinstance(source, Runner):
        return of_files(bytes_of([source]))
    if isinstance(source, str | os.PathLike):
        return of_files(files_in(source, trust))
    if callable(source):
        return Shipped(f"factory-{os.urandom(16).hex()}", {}, source)
    raise InputError(
        f"{source!r:.60} is not a compiled function, a saved folder or a factory. Pass what cg.compile returned"
    )


def of_files(files: dict[str, bytes]) -> Shipped:
    total = hashlib.sha256()
    for name in sorted(files):
        total.update(f"{name} {len(files[name])}\n".encode())
        total.update(files[name])
    return Shipped(total.hexdigest(), files)


def files_in(path: str | os.PathLike, trust: bool) -> dict[str, bytes]:
    """Return the files of a saved folder, under the rules of `cgraph.load`: it contains machine code that workers will
    run.
    """
    folder = Folder(path, trust)
    try:
        return {name: folder[name].tobytes() for name in sorted(folder)}
    finally:
        folder.close()


def check_function(function: Any) -> Runner:
    if not isinstance(function, Runner):
        raise InputError(f"the factory gave {function!r:.60}, not a compiled function. Return what cg.compile returns")
    return function


class Opened:
    """The most recently used functions of this process, by key. Mutable: a bounded cache."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runners: OrderedDict[tuple[str, int], Runner] = OrderedDict()

    def get(self, function: Shipped, threads: int) -> Runner:
        """Return a function, loaded by the first caller while others wait."""
        key = (function.key, threads)
        with self._lock:
            runner = self._runners.get(key) or function.opened(threads)
            self._runners[key] = runner
            self._runners.move_to_end(key)
            while len(self._runners) > MOST_KEPT:
                self._runners.popitem(last=False)
        return runner


OPENED = Opened()
"""Per process, because a worker's tasks share nothing else."""
