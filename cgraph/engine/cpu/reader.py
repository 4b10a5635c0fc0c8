"""The reader thread: it copies weights from their file into a ring while kernels compute, in native code."""

import io
import os
import threading
import weakref
from collections.abc import Mapping
from functools import partial
from mmap import mmap
from queue import SimpleQueue

import numpy as np

from cgraph.engine.cpu.code import Ring
from cgraph.engine.cpu.ring import ControlledTable
from cgraph.engine.cpu.threads import aligned_words, native
from cgraph.errors import WeightsError
from cgraph.kernels.control import DAMAGED, FAILED, FREED, HALT, READ, STALLED
from cgraph.storage.weight_file import Checksum
from cgraph.system.fair_lock import FairLock
from cgraph.system.file_ownership import Stamp, stamp_of
from cgraph.system.machine import check_pread
from cgraph.system.mapping import bypass_cache, new_pages, read_into, use_huge_pages

CLOSED = 5  # seconds that the end of the process waits for a disk


class Reader:
    """A ring and its thread. Mutable: the ring's contents; the thread starts when first needed, and again after a fork.

    Parameters
        ring: the pieces and their offsets
        poison: byte that fills a new ring; None leaves it unfilled
    Raises
        WeightsError: the file has changed since the function was compiled, or cannot be opened
    """

    def __init__(self, ring: Ring, poison: int | None) -> None:
        self.ring, self.file = ring, unchanged_file(ring)
        self.memory = new_pages(ring.nbytes)
        """Whole pages, which the file is read into past the system's cache; the larger they are, the faster."""
        use_huge_pages(self.memory)
        if poison is not None:
            np.frombuffer(self.memory, np.uint8)[...] = poison
        self.address = np.frombuffer(self.memory, np.uint8, 1).ctypes.data
        self.words = aligned_words(STALLED + len(ring.pieces))
        self._forget()

    def _forget(self) -> None:
        """Reset to no thread and no orders: the state of a new reader, and of a forked child."""
        self.process = os.getpid()
        self._ready: ControlledTable | None = None
        self._work = ReaderThread(self.words, self.file, self.memory, self.ring.sums)
        self._close = weakref.finalize(self, self._work.close)

    @property
    def waits(self) -> np.ndarray:
        """Seconds that runs have waited so far for the first piece that each read, the second, and so on."""
        return self.words[STALLED:] / 1e9

    def check_file(self) -> None:
        """Raise WeightsError if the file was replaced or modified since the function was compiled."""
        check_stamp(self.ring, self.file)

    def check_sum(self, offset: int, array: np.ndarray) -> None:
        """Raise WeightsError if a copy from the file does not match its checksum, if checksums are compared."""
        entry = self.ring.sums.get(offset)
        if entry is not None and not entry.fits(array.data.cast("B")):
            raise damaged(self.ring.path, f"{array.nbytes} bytes at {offset}")

    def begin(self, rows: ControlledTable) -> None:
        """Start reading for these rows, unless that has begun already."""
        if os.getpid() != self.process:
            self._close.detach()
            self._forget()
        if self._ready is not rows:
            self.order(rows)
        self._ready = None  # while it is used

    def order(self, rows: ControlledTable) -> None:
        """Read the pieces that a run of these rows needs, as far as the ring has space."""
        self._ready = None
        self._work.order(rows.orders)
        self._ready = rows

    def read_alone(self, offset: int, nbytes: int) -> None:
        """Read a piece as the reader does, into the ring, while no run uses it: for timings.

        Raises
            OSError: the piece cannot be read
        """
        self._work.stop()
        self._ready = None
        read_into(self.file.fileno(), memoryview(self.memory)[:nbytes], offset)

    def problem(self) -> WeightsError:
        """Return the exception that explains why a run could not continue."""
        number, path, piece = int(self.words[FAILED]), self.ring.path, f"piece {int(self.words[READ]) + 1}"
        if number == DAMAGED:
            return damaged(path, piece)
        why = "the file has been cut off" if number < 0 else os.strerror(number)
        return WeightsError(
            f"{path}: {piece} of the weights cannot be read: {why}. Compile again to write the file anew"
        )


class ReaderThread:
    """The state of the thread, without a reference to its Reader. Mutable: orders come and go.

    Parameters
        words: shared with runs
        file: closed at the end
        memory: of the ring; kept while a slow disk may still write to it
        sums: checksums of pieces by offset in the file; empty if none is compared
    """

    def __init__(self, words: np.ndarray, file: io.FileIO, memory: mmap, sums: Mapping[int, Checksum]) -> None:
        self.words, self.file, self.memory, self.sums = words, file, memory, sums
        self.orders: SimpleQueue[tuple[int, np.ndarray] | None] = SimpleQueue()
        self.reading = FairLock()  # had by the thread while it reads
        self.number = 0
        self.thread: threading.Thread | None = None

    def order(self, orders: np.ndarray) -> None:
        """Cancel the current order, and start this one."""
        self.stop()
        if not self.is_running:  # an interrupt may have come between making it and starting it
            self.thread = threading.Thread(target=self.run, name="weights of cgraph", daemon=True)
            self.thread.start()
        self.orders.put((self.number, orders))

    @property
    def is_running(self) -> bool:
        """True if the thread exists and is alive."""
        return self.thread is not None and self.thread.is_alive()

    def stop(self) -> None:
        """Cancel all orders and reset the words."""
        native().halt(self.words.ctypes.data)
        self.reading.run(self._reset)

    def _reset(self) -> None:
        self.number += 1
        self.words[[READ, FREED, FAILED, HALT]] = 0

    def run(self) -> None:
        """Execute orders until the order None, then close the file."""
        while (order := self.orders.get()) is not None:
            number, orders = order
            self.reading.run(partial(self._read, number, orders))
        self.file.close()

    def _read(self, number: int, orders: np.ndarray) -> None:
        if number != self.number:
            return
        if self.sums:
            self._read_checked(orders)
        else:
            self._carry_out(orders)

    def _carry_out(self, orders: np.ndarray) -> bool:
        """Return True if all pieces were read."""
        count = native().read(self.words.ctypes.data, orders.ctypes.data, len(orders), self.file.fileno())
        return count == len(orders)

    def _read_checked(self, orders: np.ndarray) -> None:
        """Read piece by piece; release each one to kernels only if its checksum is right.

        Reading a piece leaves the number of available pieces unchanged; an order of zero bytes raises it afterwards.
        That order also wakes a run when a piece is damaged: then it leaves the number unchanged.
        """
        base, content = np.frombuffer(self.memory, np.uint8, 1).ctypes.data, memoryview(self.memory)
        for offset, nbytes, address, freed, count in orders.tolist():
            if not self._carry_out(np.array([[offset, nbytes, address, freed, count - 1]], np.int64)):
                return
            is_whole = self.sums[offset].fits(content[address - base : address - base + nbytes])
            if not is_whole:
                self.words[FAILED] = DAMAGED
            if not self._carry_out(np.array([[0, 0, 0, 0, count if is_whole else count - 1]], np.int64)):
                return
            if not is_whole:
                return

    def close(self) -> None:
        """End the thread, then close the file. The garbage collector may call this in the thread itself."""
        thread = self.thread
        if thread is None or not thread.is_alive():
            self.file.close()
            return
        native().halt(self.words.ctypes.data)
        self.orders.put(None)
        if thread is not threading.current_thread():
            thread.join(CLOSED)


def unchanged_file(ring: Ring) -> io.FileIO:
    """Open the weight file, past the system's cache if the file system supports that."""
    check_pread()
    try:
        file = io.FileIO(ring.path)
    except OSError as error:
        raise unreadable(ring.path, error) from None
    try:
        check_stamp(ring, file)
    except WeightsError:
        file.close()
        raise
    bypass_cache(file)
    return file


def check_stamp(ring: Ring, file: io.FileIO) -> None:
    """Raise WeightsError unless the open file, and the file of that name, is the one that the function was compiled
    with.
    """
    try:
        stamps = stamp_of(os.stat(ring.path)), stamp_of(os.fstat(file.fileno()))
    except OSError as error:
        raise unreadable(ring.path, error) from None
    other = next((stamp for stamp in stamps if stamp != ring.stamp), None)
    if other is not None:
        raise WeightsError(
            f"{ring.path}: the file has changed since the function was compiled or loaded: "
            f"{difference(ring.stamp, other)}. Compile or load it again"
        )


def difference(before: Stamp, now: Stamp) -> str:
    """Describe how two files of one name differ."""
    if now[:2] != before[:2]:
        return "another file has this name"
    if now[2] != before[2]:
        return f"it had {before[2]} bytes and has {now[2]}"
    return "its modification time has changed"


def unreadable(path: str, error: OSError) -> WeightsError:
    return WeightsError(f"{path}: the weights cannot be read: {error.strerror}. Check the path and its permissions")


def damaged(path: str, part: str) -> WeightsError:
    return WeightsError(
        f"{path}: {part} of the weights does not match the checksum of the file. Remove the file and "
        "compile again, which writes it anew"
    )
