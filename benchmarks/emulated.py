"""Exported functions, linked and run: on this machine, in an emulator, or in node.

Instructions are counted by a QEMU plugin, where QEMU and its header for plugins are installed: no times are measured
where there is no machine.
"""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

BOARD = Path(__file__).parents[1] / "examples" / "micro" / "board"
COUNTER = Path(__file__).parent / "count_instructions.c"
CAPTURED: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 900, "check": False}
STDIO = """#include <stdio.h>
static int whole_file(const char *name, void *bytes, unsigned count, int writes) {
  FILE *f = fopen(name, writes ? "wb" : "rb");
  if (!f) return 1;
  unsigned done = (unsigned)(writes ? fwrite(bytes, 1, count, f) : fread(bytes, 1, count, f));
  return fclose(f) || done != count;
}
"""
PAINT = """  uint8_t *here = __builtin_frame_address(0);
  for (uint8_t *p = __stack_low; p < here - 256; p++) *p = 0xA5;
"""
PAINTED = """  uint8_t *p = __stack_low;
  while (p < here && *p == 0xA5) p++;
  board_number("stack ", (uint32_t)(here - p));
"""
M7 = ("mps2-an500", "an500.ld", "-mcpu=cortex-m7 -mfloat-abi=hard -mfpu=fpv5-d16")
M55 = ("mps3-an547", "an547.ld", "-mcpu=cortex-m55 -mfloat-abi=hard")
BOARDS = {"cortex-m4": M7, "cortex-m7": M7, "cortex-m55": M55}
USERS = {
    "neon": ("aarch64-linux-gnu-gcc", "qemu-aarch64", "gcc-aarch64-linux-gnu qemu-user"),
    "riscv64": ("riscv64-linux-gnu-gcc", "qemu-riscv64", "gcc-riscv64-linux-gnu qemu-user"),
}


class MissingProgram(Exception):
    """A compiler or an emulator is not installed; the text names the packages."""


class Run:
    """One run of an exported function: the bytes of its outputs, what it printed, its exit status, and how many
    instructions it took with the program around it, if they were counted."""

    def __init__(self, outputs: bytes, text: str, status: int, instructions: int | None = None) -> None:
        self.outputs, self.text, self.status, self.instructions = outputs, text, status, instructions

    @property
    def stack(self) -> int:
        """Bytes of painted stack that the run touched."""
        return int(self.text.split("stack ", 1)[1].split()[0])


def run_export(folder: Path, runs: int = 1, counts: bool = False) -> Run:
    """Link an export with a program that runs it on its check inputs, `runs` times, and return the last outputs.

    Parameters
        counts: count instructions, where the machine is emulated by QEMU
    """
    return run_in_order(folder, [0], runs, counts)


def run_in_order(folder: Path, order: Sequence[int], repeats: int = 1, counts: bool = False) -> Run:
    """Link an export with a program that makes runs in an order, and return the outputs of all.

    Parameters
        order: numbers of runs, of an export of several sizes
        repeats: how often each is made before its outputs are read
        counts: count instructions, where the machine is emulated by QEMU
    """
    manifest = json.loads((folder / "manifest.json").read_text())
    target = manifest["target"]
    if target == "wasm32":
        return run_in_node(folder, manifest, order, repeats)
    board = BOARDS.get(target)
    work = folder / "run"
    work.mkdir(exist_ok=True)
    for file in (folder / "check").glob("in*.bin"):
        shutil.copy(file, work)
    (work / "harness.c").write_text(harness(manifest, order, repeats, board is not None))
    sources = [*map(str, folder.glob("*.o")), *(str(x) for x in folder.glob("*.c") if x.name != "main.c"), "harness.c"]
    if board:
        return run_on_board(work, sources, board, folder, counts)
    compiler, emulator, packages = next((row for name, row in USERS.items() if target.startswith(name)), ("cc", "", ""))
    require(compiler, packages)
    call(
        work, compiler, "-O1", "-Wall", f"-I{folder}", *(["-static"] if emulator else []), *sources, "-lm", "-o", "run"
    )
    if emulator:
        require(emulator, packages)
    arguments = (
        [emulator, "-cpu", "max", "./run"] if emulator == "qemu-aarch64" else [*filter(None, [emulator]), "./run"]
    )
    done = subprocess.run(arguments, cwd=work, capture_output=True, text=True, timeout=900)
    return finished(work, done)


def runs_of(manifest: dict) -> list[dict]:
    """Return the name, suffix, inputs and outputs of each run of an export."""
    whole = {"run": f"{manifest['name']}_run", "suffix": ""}
    return manifest.get("runs") or [whole | {kind: manifest[kind] for kind in ("inputs", "outputs")}]


def run_on_board(work: Path, sources: list[str], board: tuple[str, str, str], folder: Path, counts: bool) -> Run:
    machine, script, flags = board
    require("arm-none-eabi-gcc", "gcc-arm-none-eabi")
    require("qemu-system-arm", "qemu-system-arm")
    call(
        work,
        *(
            "arm-none-eabi-gcc",
            *flags.split(),
            "-mthumb",
            "-O2",
            "-ffreestanding",
            "-fno-tree-loop-distribute-patterns",
        ),
        *("-nostartfiles", "-nostdlib", f"-I{folder}", f"-I{BOARD}", "-T", script, f"-L{BOARD}"),
        *(str(BOARD / "start.c"), *sources, "-lm", "-lc", "-lgcc", "-o", "run"),
    )
    arguments = f"qemu-system-arm -M {machine} -nographic -monitor none -serial none -semihosting-config".split()
    counting = plugin(work) if counts else []
    done = subprocess.run([*arguments, "enable=on,target=native", *counting, "-kernel", "run"], cwd=work, **CAPTURED)
    return finished(work, done)


def plugin(work: Path) -> list[str]:
    """Compile the plugin that counts instructions, and return QEMU's options for it."""
    require("cc", "gcc")
    call(work, "cc", "-shared", "-fPIC", "-O2", str(COUNTER), "-o", "count.so")
    return ["-plugin", str(work / "count.so")]


def run_in_node(folder: Path, manifest: dict, order: Sequence[int], repeats: int) -> Run:
    """Run the linked module by its loader, as a user's script would."""
    require("node", "nodejs")
    name = manifest["name"]
    suffixes = [x["suffix"] for x in runs_of(manifest)]
    script = f"""
import {{ readFileSync, writeFileSync }} from "fs";
import {{ load }} from "./{name}.mjs";
const model = await load(readFileSync("{name}.wasm"));
const parts = [];
for (const suffix of {json.dumps([suffixes[i] for i in order])}) {{
  const run = model[`run${{suffix}}`];
  const bytes = readFileSync(`check/in${{suffix}}.bin`);
  let at = 0;
  const inputs = {{}};
  for (const x of run.inputs) {{ inputs[x.name] = bytes.subarray(at, at + x.bytes); at += x.bytes; }}
  let outputs;
  for (let i = 0; i < {repeats}; i++) outputs = run(inputs);
  parts.push(...run.outputs.map((x) => Buffer.from(
    outputs[x.name].buffer, outputs[x.name].byteOffset, outputs[x.name].byteLength)));
}}
writeFileSync("run.bin", Buffer.concat(parts));
"""
    (folder / "run.mjs").write_text(script)
    done = subprocess.run(["node", "run.mjs"], cwd=folder, **CAPTURED)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return Run((folder / "run.bin").read_bytes(), done.stdout, 0)


def finished(work: Path, done: subprocess.CompletedProcess) -> Run:
    out = work / "out.bin"
    count = work / "instructions.txt"
    instructions = int(count.read_text()) if count.exists() else None
    return Run(out.read_bytes() if out.exists() else b"", done.stdout + done.stderr, done.returncode, instructions)


def harness(manifest: dict, order: Sequence[int], repeats: int, is_board: bool) -> str:
    """Return a program: files of inputs to the parameters, runs in an order, and all outputs to out.bin."""
    name, caller, runs = manifest["name"], manifest["bytes"]["memory"], runs_of(manifest)
    lines = [
        f'#include "{name}.h"',
        "#include <string.h>",
        '#include "board.h"\n#define whole_file board_file' if is_board else STDIO,
    ]
    used = [runs[i] for i in dict.fromkeys(order)]
    for run in used:
        for kind, x in values_of(run):
            lines.append(f"static {x['type']} {variable(kind, run, x)}[{x['count']}] __attribute__((aligned(16)));")
    largest = max(sum(x["bytes"] for x in run["inputs"]) for run in used)
    total = sum(x["bytes"] for i in order for x in runs[i]["outputs"])
    lines.append(f"static uint8_t all_inputs[{largest + 1}], all_outputs[{total + 1}];")
    if caller:
        lines.append(f"static uint8_t memory[{caller}] __attribute__((aligned(64)));")
    lines.append("int main(void) {\n  int error = 0;")
    for run in used:
        nbytes = sum(x["bytes"] for x in run["inputs"])
        lines.append(f'  if (whole_file("in{run["suffix"]}.bin", all_inputs, {nbytes}, 0)) return 97;')
        lines += copies(run, "inputs", 0, "memcpy({variable}, all_inputs + {at}, {nbytes});")
    if caller:
        lines.append(f"  if ({name}_begin(memory)) return 96;")
    lines.append(PAINT if is_board else "")
    at = 0
    for number, i in enumerate(order):
        lines.append(f"  for (int i = 0; i < {repeats} && !error; i++) error = {call_of(manifest, runs[i])};")
        lines.append(PAINTED if is_board and number == len(order) - 1 else "")
        lines.append("  if (error) return error;")
        lines += copies(runs[i], "outputs", at, "memcpy(all_outputs + {at}, {variable}, {nbytes});")
        at += sum(x["bytes"] for x in runs[i]["outputs"])
    lines.append(f'  return whole_file("out.bin", all_outputs, {total}, 1) ? 98 : 0;\n}}\n')
    return "\n".join(lines)


def values_of(run: dict) -> list[tuple[str, dict]]:
    """Return the inputs and outputs of a run, each with its kind."""
    return [(kind, x) for kind in ("inputs", "outputs") for x in run[kind]]


def variable(kind: str, run: dict, x: dict) -> str:
    return f"{kind}{run['suffix']}_{x['name']}"


def call_of(manifest: dict, run: dict) -> str:
    """Return the call of a run in C."""
    arguments = ["memory"] if manifest["bytes"]["memory"] else []
    arguments += [variable(kind, run, x) for kind, x in values_of(run)]
    arguments += ["0"] if manifest["threads"] else []
    return f"{run['run']}({', '.join(arguments)})"


def copies(run: dict, kind: str, start: int, line: str) -> list[str]:
    """Return a line of C for each value, with its place behind `start`."""
    lines, at = [], start
    for x in run[kind]:
        lines.append("  " + line.format(variable=variable(kind, run, x), at=at, nbytes=x["bytes"]))
        at += x["bytes"]
    return lines


def require(program: str, packages: str) -> None:
    """Raise MissingProgram if a program is not installed."""
    if shutil.which(program) is None:
        raise MissingProgram(f"no {program}: apt-get install {packages}")


def call(folder: Path, *arguments: str) -> None:
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}\n{done.stderr}")
