"""NVIDIA's assembler, where it is installed, and what it says of a kernel."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Usage:
    """What a kernel takes: registers of a thread, bytes of its stack and of what was spilled there."""

    registers: int
    stack: int
    spills: int


def ptxas() -> str:
    """The assembler of the path, or of the package nvidia-cuda-nvcc; skips where there is neither."""
    found = shutil.which("ptxas")
    package = find_spec("nvidia")
    folders = package.submodule_search_locations if package else None
    found = found or next((str(p) for folder in folders or () for p in Path(folder).glob("*/bin/ptxas")), None)
    if found is None:
        pytest.skip("ptxas is not installed (pip install nvidia-cuda-nvcc)")
    return found


def usage(text: str, cpu: str, folder: Path) -> Usage:
    """What ptxas says of the one kernel of a PTX module. It refuses what no GPU would run."""
    source = folder / "kernel.ptx"
    source.write_text(text)
    command = [ptxas(), "-v", f"-arch={cpu}", str(source), "-o", str(folder / "kernel.cubin")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    stack, stores, loads = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+)", said).groups()
    return Usage(int(re.search(r"Used (\d+) registers", said)[1]), int(stack), int(stores) + int(loads))
