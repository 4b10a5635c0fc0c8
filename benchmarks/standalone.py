"""Sizes, stack and instructions of exported networks, and whether their bits are those of their twins.

    python -m benchmarks.standalone [--machines cortex-m7,neon] [--networks lenet,person_detection] [--budgets 1,0.5]

One line for each network, machine and budget: bytes of code, constants and arena, the bound of the stack, millions of
instructions of one run (an emulator's count: no time), and the comparison of the outputs with a twin on this machine
and, after a row of budget 1, with that row's.
A network may also be the path of a .tflite file. The four 8-bit files of MLPerf Tiny are read from the folder that
CGRAPH_DATA names. Needs compilers and emulators:
gcc-arm-none-eabi qemu-system-arm gcc-aarch64-linux-gnu gcc-riscv64-linux-gnu qemu-user nodejs lld.
"""

import argparse
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import cgraph as cg
import nn
from benchmarks.emulated import MissingProgram, run_export
from benchmarks.micro_networks import PUBLISHED, micro_network
from cgraph.errors import BudgetError
from cgraph.formats import tflite
from nn.compile import freeze
from nn.models.lenet import lenet
from nn.models.mobilenet_v1 import MobileNetV1
from nn.models.resnet import resnet20

MACHINES = ("neon", "neon-i8mm", "cortex-m7", "cortex-m55", "wasm32", "riscv64")
Graph = tuple[Sequence[cg.Node], Sequence[cg.Var], dict]


def network(model: nn.Layer, shape: tuple[int, ...]) -> Graph:
    image = cg.Var(shape, "float32", "image")
    return [freeze(model)(image)], [image], {}


def script() -> Graph:
    """An exponential mean of what comes, and how far each value is from it."""
    x, mean = cg.Var((64,), "float32", "x"), cg.Var((64,), "float32", "mean")
    mean.assign(np.zeros(64, np.float32))
    new = mean + np.float32(0.1) * (x - mean)
    return [cg.exp(-((x - mean) ** 2)), cg.sum(new)], [x], {mean: new}


def from_file(file: bytes | Path) -> Graph:
    """An 8-bit network, with bytes in and out."""
    model = tflite.load(file)
    return model.outputs, model.inputs, {}


def tiny(name: str) -> Graph:
    """A file of MLPerf Tiny."""
    return from_file(Path(os.environ.get("CGRAPH_DATA", "data")) / "mlperf_tiny" / name)


NETWORKS: dict[str, Callable[[], Graph]] = {
    "script": script,
    "lenet": lambda: network(lenet(0), (1, 1, 28, 28)),
    "resnet20": lambda: network(resnet20(0), (1, 3, 32, 32)),
    "mobilenet": lambda: network(nn.initialise(MobileNetV1(2, 0.25, (3, 96, 96)), 0), (1, 3, 96, 96)),
    "person_detection": lambda: tiny("vww_96_int8.tflite"),
    "resnet8": lambda: tiny("pretrainedResnet_quant.tflite"),
    "keyword_spotting": lambda: tiny("kws_ref_model.tflite"),
    "anomaly_detection": lambda: tiny("ad01_int8.tflite"),
    **{name: lambda name=name: from_file(micro_network(name)) for name in PUBLISHED},
}


def row(name: str, machine: str, share: float, whole_outputs: dict[tuple[str, str], bytes]) -> str:
    """Return one line of the table; a share above 1 is a budget of bytes.

    Changes: `whole_outputs` gains the outputs without a budget by network and machine.
    """
    outputs, inputs, updates = NETWORKS[name]() if name in NETWORKS else from_file(Path(name))
    options: dict = {"winograd": False}
    if share > 1:
        options["budget"] = int(share)
    elif share < 1:
        whole = cg.compile(outputs, inputs, updates, engine=cg.ExportEngine(machine), **options)
        options["budget"] = int(whole.nbytes * share)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m")
        try:
            exported = cg.export(outputs, inputs, path, target=machine, updates=updates, **options)
        except BudgetError:
            return f"| {Path(name).stem} | {machine} | {share:g} | refused |"
        bits, count = "", None
        try:
            first = run_export(path, 1)
            if share == 1:
                whole_outputs[name, machine] = first.outputs
            references = [(path / "check/out.bin").read_bytes(), whole_outputs.get((name, machine), first.outputs)]
            bits = "same" if all(x == first.outputs for x in references) else "OTHER"
            count = instructions(path)
        except MissingProgram as error:
            bits = str(error)
        text = code_bytes(path, exported.constant_nbytes)
    stack = "" if exported.stack_nbytes is None else f"{exported.stack_nbytes:,}"
    million = "" if count is None else f"{count / 1e6:.2f}"
    cells = (
        Path(name).stem,
        machine,
        f"{share:g}",
        text,
        f"{exported.constant_nbytes:,}",
        f"{exported.arena_nbytes:,}",
        stack,
    )
    return f"| {' | '.join((*cells, million, bits))} |"


def instructions(folder: Path) -> int | None:
    """Return the instructions of one run: those of two runs, less those of one. None where they cannot be counted."""
    one, two = (run_export(folder, n, counts=True).instructions for n in (1, 2))
    return None if one is None or two is None else two - one


FLASH = (".text", ".rodata", ".data.rel.ro", ".ARM.exidx", ".srodata", ".eh_frame")  # beginnings of sections' names


def code_bytes(folder: Path, constant_nbytes: int) -> str:
    """Return the bytes of code and tables: all that flash holds, less the constants. Of the linked module for
    WebAssembly, the whole file.
    """
    module = folder / "m.wasm"
    if module.exists():
        return f"{module.stat().st_size:,} (file)"
    done = subprocess.run(["size", "-A", folder / "m.o"], capture_output=True, text=True, check=False)
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith(FLASH)]
    return f"{sum(int(x[1]) for x in lines) - constant_nbytes:,}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Sizes, stack and instructions of exported networks")
    parser.add_argument("--machines", default=",".join(MACHINES))
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--budgets", default="1", help="shares of the arena, such as 1,0.5, or bytes")
    args = parser.parse_args()
    print("| network | machine | budget | code | constants | arena | stack | million instructions | bits |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---|")
    whole_outputs: dict[tuple[str, str], bytes] = {}
    for name in args.networks.split(","):
        for machine in args.machines.split(","):
            for share in args.budgets.split(","):
                print(row(name, machine, float(share), whole_outputs), flush=True)


if __name__ == "__main__":
    main()
