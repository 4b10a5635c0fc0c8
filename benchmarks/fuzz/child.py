"""A child process that reads files one after another, with bounded memory, and reports the outcome of each.

The limits of one file are those of `docs/formats.md`: twice the file and 64 MB. A file on which the child dies or does
not answer is trouble, too; the next file gets a new child.

    python -m benchmarks.fuzz.child READER     # reads paths from its input, one a line
"""

import ctypes
import gc
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

from cgraph.errors import CgraphError
from cgraph.record import Record

CPU_SECONDS = 10  # for one file
WALL_SECONDS, WAITS = 10, 12  # by the clock, and how often a process may sleep as long; computing is limited above
ROOM, TIMES = 64 << 20, 2  # bytes of memory, and bytes per byte of the file
SLACK = 8 << 20  # bytes that Python and its libraries may use meanwhile: lazily imported modules, allocators
ADDRESSES = 1 << 30  # bytes of address space beyond those after the imports
FINE = ("model", "refused", "contained")


class Outcome(Record):
    """The outcome of reading one file.

    Fields
        kind: ``model``, ``refused`` (a typed error), ``contained`` (a crash in a process of its own); or trouble:
            ``untyped``, ``memory``, ``time``, ``crash``
        text: the error, or the limit that was exceeded
        nbytes: memory used; 0 if unknown
        seconds: processor seconds
    """

    kind: str
    text: str = ""
    nbytes: int = 0
    seconds: float = 0.0

    @property
    def is_trouble(self) -> bool:
        return self.kind not in FINE


class Child:
    """A process that reads files. Changes: it is restarted when it dies.

    Parameters
        reader: a name in `benchmarks.fuzz.readers.READERS`
        module: the module that the process runs; tests of this class pass another one
    """

    def __init__(self, reader: str, module: str = "benchmarks.fuzz.child") -> None:
        self.reader, self.module = reader, module
        self.process: subprocess.Popen | None = None

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def outcome(self, path: Path) -> Outcome:
        """Return the outcome of reading a file."""
        process = self.process or self.start()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(f"{path}\n".encode())
        process.stdin.flush()
        waits = 0
        while not select.select([process.stdout], [], [], WALL_SECONDS)[0]:
            waits += sleeps(process.pid)
            if waits == WAITS:
                self.stop()
                return Outcome("time", f"no answer after {WAITS * WALL_SECONDS} s")
        answer = process.stdout.readline()
        if answer:
            return Outcome(**json.loads(answer))
        status = process.wait()
        self.stop()
        over = status == -signal.SIGXCPU
        return Outcome("time" if over else "crash", signal.Signals(-status).name if status < 0 else f"status {status}")

    def start(self) -> subprocess.Popen:
        command = [sys.executable, "-m", self.module, self.reader]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        return self.process

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout):
                if pipe is not None:
                    pipe.close()
        self.process = None


def sleeps(pid: int) -> bool:
    """Return True if a process waits, but not for a processor and not because it was stopped."""
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state in "SD"


def outcome_of(reader: str, contents: bytes) -> Outcome:
    """Return the outcome of reading these bytes in a child of their own."""
    with tempfile.TemporaryDirectory() as folder, Child(reader) as child:
        path = Path(folder) / "input"
        path.write_bytes(contents)
        return child.outcome(path)


# -- inside the child -------------------------------------------------------------------------------------------------


def kibibytes(key: str) -> int:
    """Return the bytes in a line of this process's status."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(key))


def tried(read: Any, path: Path) -> Outcome:
    """Read one file in this process."""
    give_back_memory()
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    before, start = kibibytes("VmRSS"), processor_seconds()
    limit_processor(time.process_time())
    try:
        found = read(path)
        kind, text = "model", ""
        del found
    except CgraphError as error:
        kind, text = "refused", f"{type(error).__name__}: {error}"[:300]
    except BaseException as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno} {where.name}"
        kind, text = "untyped", f"{type(error).__name__} in {place}: {error}"[:300]
    nbytes, seconds = max(kibibytes("VmHWM") - before, 0), processor_seconds() - start
    most = TIMES * path.stat().st_size + ROOM
    if kind in FINE and nbytes > most + SLACK:
        kind, text = "memory", f"{nbytes >> 20} MiB, {most >> 20} are allowed"
    if kind in FINE and seconds > CPU_SECONDS:
        kind, text = "time", f"{seconds:.1f} s"
    return Outcome(kind, text, nbytes, seconds)


def give_back_memory() -> None:
    """Return free memory to the system, so that memory of an earlier file does not hide that of this one."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc
    if trim is not None:
        trim(0)


def processor_seconds() -> float:
    """Return processor seconds that this process and its children have used."""
    return sum(os.times()[:4])


def limit_processor(now: float) -> None:
    """End this process when it computes for more than CPU_SECONDS, plus some, from now on."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(now) + CPU_SECONDS + 2, hard))


def answer(read: Any) -> None:
    """Answer every path with an outcome as JSON."""
    most = kibibytes("VmSize") + ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # redirect what libraries print
    for line in sys.stdin:
        found = tried(read, Path(line.rstrip("\n")))
        out.write(json.dumps({name: getattr(found, name) for name in Outcome._fields}) + "\n")
        out.flush()


if __name__ == "__main__":
    answer(import_module("benchmarks.fuzz.readers").READERS[sys.argv[1]].read)
