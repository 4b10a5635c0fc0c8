"""NVIDIA's assembler, where it is installed, what it says of a kernel, and what the main loop is made of."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d+\s+)?([A-Z][A-Z0-9]*)")


@dataclass(frozen=True)
class Usage:
    """What a kernel takes: registers of a thread, bytes of its stack and of what was spilled there."""

    registers: int
    stack: int
    spills: int


def tool(name: str, package: str) -> str:
    """A program of NVIDIA's on the path, or of a package of pip's; skips where there is neither."""
    found = shutil.which(name)
    nvidia = find_spec("nvidia")
    folders = nvidia.submodule_search_locations if nvidia else None
    found = found or next((str(p) for folder in folders or () for p in Path(folder).glob(f"*/bin/{name}")), None)
    if found is None:
        pytest.skip(f"{name} is not installed (pip install {package})")
    return found


def usage(text: str, cpu: str, folder: Path) -> Usage:
    """What ptxas says of the one kernel of a PTX module. It refuses what no GPU would run."""
    source = folder / "kernel.ptx"
    source.write_text(text)
    command = [tool("ptxas", "nvidia-cuda-nvcc"), "-v", f"-arch={cpu}", str(source), "-o", str(folder / "kernel.cubin")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    stack, stores, loads = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+)", said).groups()
    return Usage(int(re.search(r"Used (\d+) registers", said)[1]), int(stack), int(stores) + int(loads))


def largest_loop(text: str, cpu: str, folder: Path) -> list[str]:
    """The instructions of the longest innermost loop of a kernel's machine code, by name."""
    usage(text, cpu, folder)
    command = [tool("nvdisasm", "nvidia-cuda-nvdisasm"), "-c", str(folder / "kernel.cubin")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    labels = {line.rstrip(":"): at for at, line in enumerate(lines) if line.startswith(".L_")}
    jumps = [(at, re.search(r"\bBRA\b.*`\((\.L_\w+)\)", line)) for at, line in enumerate(lines)]
    loops = [(labels[to[1]], at) for at, to in jumps if to and labels[to[1]] < at]
    inner = [x for x in loops if not any(x != y and x[0] <= y[0] and y[1] <= x[1] for y in loops)]
    bodies = [[found[1] for line in lines[a : b + 1] if (found := INSTRUCTION.search(line))] for a, b in inner]
    return max(bodies, key=len)
