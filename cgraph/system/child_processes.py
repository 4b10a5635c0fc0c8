"""Child processes: Python programs of this package, started so that no file of the current folder can run.

A file that a user downloaded often lies in the current folder, next to files named ``json.py`` or ``numpy.py`` that
came with it. So a child imports nothing from the current folder or from the folder of a script (``python -P``) and
ignores ``PYTHONPATH`` and all other variables of Python (``-E``). It inherits no descriptors, and its input is empty.
The package is the one of this process, also where none or another one is installed.
"""

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

WINDOWS_ERROR = 0xC0000000  # exit statuses from here on are exceptions of Windows: NTSTATUS
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import runpy, sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

folder, module = sys.argv.pop(1), sys.argv.pop(1)
spec = PathFinder.find_spec(module.partition(".")[0], [folder])
package = sys.modules[spec.name] = module_from_spec(spec)
spec.loader.exec_module(package)
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
"""Loads the package from the folder that holds it, and runs a module of it."""


def run_program(command: Sequence[str]) -> tuple[int, str]:
    """Run another program by its full path, without input; return its exit status and its error messages."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        close_fds=True,
        check=False,
    )
    return done.returncode, done.stderr.decode(errors="replace")


def run_module(module: str, arguments: list[str], output: IO[bytes], errors: IO[bytes], seconds: float) -> int | None:
    """Run a module of this package as a program in a child process, and return its exit status.

    Parameters
        module: its full name
        arguments: its command line
        output, errors: files for its output and its error messages
        seconds: after this time it is killed
    Returns
        the exit status, a negative signal number if a signal ended it, None if it took too long. See `ending_of`
    Raises
        OSError: the system refuses a process, or this program has no Python interpreter that can be started
    """
    if not sys.executable or getattr(sys, "frozen", False):  # a packed application would start itself again
        raise OSError("this program contains Python, but no interpreter that can be started for a child process")
    command = [sys.executable, "-E", "-P", "-c", PROGRAM, str(ROOT), module, *arguments]
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, timeout=seconds, close_fds=True
        ).returncode
    except subprocess.TimeoutExpired:
        return None


def ending_of(status: int) -> str:
    """Return the name of the signal, or the number of Windows's exception, that ended a process; else ""."""
    if status < 0:
        return signal.Signals(-status).name
    return f"exception {status:#x}" if status >= WINDOWS_ERROR else ""
