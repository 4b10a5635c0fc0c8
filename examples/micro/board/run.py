"""Link C sources with an exported function for an emulated board, and run them there.

Needs gcc-arm-none-eabi and qemu-system-arm (Debian's package names).
"""

import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
BOARDS = {
    "cortex-m7": ("mps2-an500", "an500.ld", "-mcpu=cortex-m7 -mfloat-abi=hard -mfpu=fpv5-d16"),
    "cortex-m55": ("mps3-an547", "an547.ld", "-mcpu=cortex-m55 -mfloat-abi=hard"),
}
COMPILER, EMULATOR = "arm-none-eabi-gcc", "qemu-system-arm"


def run_on_board(folder: Path, sources: list[Path], target: str = "cortex-m7") -> str:
    """Return what a program prints.

    Parameters
        folder: the export; the program runs in it and may read and write files there
        sources: C files with a `main`
        target: a key of BOARDS
    Raises
        SystemExit: the compiler or the emulator is not installed
        RuntimeError: the program does not link, or ends with an error
    """
    for program, package in ((COMPILER, "gcc-arm-none-eabi"), (EMULATOR, "qemu-system-arm")):
        if shutil.which(program) is None:
            raise SystemExit(f"{program} is not installed. Install it with: apt-get install {package}")
    machine, script, flags = BOARDS[target]
    options = "-mthumb -O2 -ffreestanding -fno-tree-loop-distribute-patterns -nostartfiles -nostdlib".split()
    places = [f"-I{folder}", f"-I{HERE}", "-T", script, f"-L{HERE}"]
    objects = [HERE / "start.c", *sources, *folder.glob("*.o"), "-lgcc"]
    finish(subprocess.run([COMPILER, *flags.split(), *options, *places, *objects, "-o", folder / "program"], **TEXT))
    emulate = f"-M {machine} -nographic -monitor none -serial none -semihosting-config enable=on,target=native"
    return finish(subprocess.run([EMULATOR, *emulate.split(), "-kernel", "program"], cwd=folder, **TEXT))


TEXT = {"capture_output": True, "text": True, "check": False}


def finish(done: subprocess.CompletedProcess) -> str:
    """Return a command's output. RuntimeError if it failed."""
    if done.returncode:
        raise RuntimeError(f"{done.args[0]} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr
