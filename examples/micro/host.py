"""A C program on this machine that needs no Python: an exponential mean of numbers, with state.

    python examples/micro/host.py [folder]

Needs a C compiler. The program reads numbers from standard input, eight at a time.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import cgraph as cg

HERE = Path(__file__).resolve().parent


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    x, mean = cg.Var((8,), "float32", "x"), cg.Var((8,), "float32", "mean")
    mean.assign(np.zeros(8, np.float32))
    new = mean + np.float32(0.25) * (x - mean)
    export = folder / "smooth"
    print(cg.export(new, x, export, target="portable", updates={mean: new}, names=["smoothed"], reset=True))
    command = [
        "cc",
        "-std=c99",
        "-Wall",
        "-I",
        export,
        HERE / "host.c",
        export / "smooth.o",
        "-lm",
        "-o",
        export / "smooth",
    ]
    subprocess.run(command, check=True)
    numbers = " ".join(str(n) for n in range(32))
    print(subprocess.run([export / "smooth"], input=numbers, capture_output=True, text=True, check=True).stdout, end="")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()))
