"""What brings weights from their file into a ring while kernels compute. It enters native code for each run."""

import fcntl
import io
import mmap
import os
import threading
import weakref
from contextlib import suppress
from functools import partial
from queue import SimpleQueue

import numpy as np

from cgraph.engine.cpu.code import Ring
from cgraph.engine.cpu.ring import Controlled
from cgraph.engine.cpu.threads import aligned_words, native
from cgraph.errors import WeightsError
from cgraph.kernels.control import FAILED, FREED, HALT, READ, STALLED
from cgraph.turns import Turns

CLOSED = 5  # seconds that the end of the process waits for a disk


class Reader:
    """A ring with its thread. Changes: what the ring holds; the thread is started when first needed, and after a fork.

    Parameters
        ring: where pieces lie
        poison: what the ring is filled with at first; None leaves it as it is
    Raises
        WeightsError: the file has changed since the function was compiled, or cannot be opened
    """

    def __init__(self, ring: Ring, poison: int | None) -> None:
        self.path, self.file = ring.path, unchanged_file(ring)
        self.memory = mmap.mmap(-1, ring.nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        """Whole pages, which the file is read into past the system's cache; the larger they are, the faster."""
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # a system that has none
                self.memory.madvise(mmap.MADV_HUGEPAGE)
        if poison is not None:
            np.frombuffer(self.memory, np.uint8)[...] = poison
        self.address = np.frombuffer(self.memory, np.uint8, 1).ctypes.data
        self.words = aligned_words(STALLED + len(ring.pieces))
        self._forget()

    def _forget(self) -> None:
        """There is no thread and nothing is read: true of a new one, and in a forked child."""
        self.process = os.getpid()
        self._ready: Controlled | None = None
        self._work = Work(self.words, self.file, self.memory)
        self._close = weakref.finalize(self, self._work.close)

    @property
    def waits(self) -> np.ndarray:
        """Seconds that runs have waited so far: for the first piece that each read, the second, and so on."""
        return self.words[STALLED:] / 1e9

    def begin(self, rows: Controlled) -> None:
        """Read what these rows need, unless that is what has been begun."""
        if os.getpid() != self.process:
            self._close.detach()
            self._forget()
        if self._ready is not rows:
            self.order(rows)
        self._ready = None  # while it is used

    def order(self, rows: Controlled) -> None:
        """Read what a run of these rows needs, as far as the ring takes it."""
        self._ready = None
        self._work.order(rows.orders)
        self._ready = rows

    def read_alone(self, offset: int, nbytes: int) -> None:
        """Read a piece as the reader does, into the ring, while no run uses it: for timings.

        Raises
            OSError: it cannot be read
        """
        self._work.stop()
        self._ready = None
        os.preadv(self.file.fileno(), [memoryview(self.memory)[:nbytes]], offset)

    def problem(self) -> WeightsError:
        """Why a run could not go on."""
        number, path = int(self.words[FAILED]), self.path
        why = "it is shorter than it was" if number < 0 else os.strerror(number)
        return WeightsError(f"{path}: piece {int(self.words[READ]) + 1} of the weights cannot be read: {why}")


class Work:
    """What the thread knows; it keeps no Reader alive. Changes: orders come and go.

    Parameters
        words: shared with runs
        file: is closed at the end
        memory: of the ring; it must not go while a disk that hangs may still write there
    """

    def __init__(self, words: np.ndarray, file: io.FileIO, memory: mmap.mmap) -> None:
        self.words, self.file, self.memory = words, file, memory
        self.orders: SimpleQueue[tuple[int, np.ndarray] | None] = SimpleQueue()
        self.reading = Turns()  # had by the thread while it reads
        self.number = 0
        self.thread: threading.Thread | None = None

    def order(self, orders: np.ndarray) -> None:
        """Stop what is being read, and read this."""
        self.stop()
        if not self.is_running:  # an interrupt may have come between making it and starting it
            self.thread = threading.Thread(target=self.run, name="weights of cgraph", daemon=True)
            self.thread.start()
        self.orders.put((self.number, orders))

    @property
    def is_running(self) -> bool:
        """The thread is there, and alive."""
        return self.thread is not None and self.thread.is_alive()

    def stop(self) -> None:
        """No order is carried out any more; the words are as before any."""
        native().halt(self.words.ctypes.data)
        self.reading.run(self._reset)

    def _reset(self) -> None:
        self.number += 1
        self.words[[READ, FREED, FAILED, HALT]] = 0

    def run(self) -> None:
        """Carry out orders until there is None."""
        while (order := self.orders.get()) is not None:
            number, orders = order
            self.reading.run(partial(self._read, number, orders))

    def _read(self, number: int, orders: np.ndarray) -> None:
        if number == self.number:
            native().read(self.words.ctypes.data, orders.ctypes.data, len(orders), self.file.fileno())

    def close(self) -> None:
        """End the thread, then close the file."""
        if self.thread is not None and self.thread.is_alive():
            native().halt(self.words.ctypes.data)
            self.orders.put(None)
            self.thread.join(CLOSED)
            if self.thread.is_alive():
                return
        self.file.close()


def unchanged_file(ring: Ring) -> io.FileIO:
    """The file, which is read past the system's cache where the file system can; it closes itself when it is lost."""
    try:
        file = io.FileIO(ring.path)
        status = os.fstat(file.fileno())
    except OSError as error:
        raise WeightsError(f"{ring.path}: the weights cannot be read: {error.strerror}") from None
    if (status.st_size, status.st_mtime_ns) != ring.stamp:
        file.close()
        raise WeightsError(f"{ring.path}: the file has changed since the function was compiled")
    with suppress(OSError):
        fcntl.fcntl(file, fcntl.F_SETFL, os.O_RDONLY | getattr(os, "O_DIRECT", 0))
    return file
