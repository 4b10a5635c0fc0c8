"""Reading a Keras file that nobody vouches for: in a process of its own, with bounded memory and time.

The HDF5 library is written in C and has been made to crash by crafted files. Here only the child can crash; it hands
back JSON and safetensors, which are checked again.
"""

import json
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from cgraph.errors import CgraphError, FormatError
from cgraph.formats.keras_h5 import MOST_NBYTES, KerasFile, read_keras

SECONDS = 60
MEMORY = 2 * MOST_NBYTES
SEPARATOR = "\t"


def read_keras_apart(path: str | Path, seconds: float = SECONDS) -> KerasFile:
    """As `read_keras`, in a child process.

    Raises
        FormatError: as `read_keras`; or the child crashed, took too long, or needed too much memory
    """
    command = [sys.executable, "-m", "cgraph.formats.keras_apart", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise FormatError(f"{path}: reading it took more than {seconds} s") from None
    if done.returncode < 0:
        raise FormatError(f"{path}: reading it ended by {signal.Signals(-done.returncode).name}")
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise FormatError(lines[-1] if lines else f"{path}: reading it failed")
    return unpacked(done.stdout, path)


def packed(file: KerasFile) -> bytes:
    """Length of the JSON text, the text, and the arrays as safetensors."""
    arrays = {f"{layer}{SEPARATOR}{name}": x for layer, own in file.weights.items() for name, x in own.items()}
    text = json.dumps(file.config).encode()
    return len(text).to_bytes(8, "little") + text + safetensors.numpy.save(arrays)


def unpacked(contents: bytes, path: str | Path) -> KerasFile:
    """The file that the child packed."""
    length = int.from_bytes(contents[:8], "little")
    try:
        config = json.loads(contents[8 : 8 + length])
        arrays = safetensors.numpy.load(contents[8 + length :])
    except (ValueError, SafetensorError) as error:
        raise FormatError(f"{path}: the reader handed back something else: {error}") from error
    weights: dict[str, dict[str, np.ndarray]] = {}
    for name, x in arrays.items():
        layer, _, own = name.partition(SEPARATOR)
        weights.setdefault(layer, {})[own] = x
    return KerasFile(config, weights)


def main() -> int:
    """The child: read the named file, write it to the standard output."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        sys.stdout.buffer.write(packed(read_keras(sys.argv[1])))
    except (CgraphError, MemoryError) as error:
        sys.stderr.write(f"{error or 'it needs too much memory'}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
