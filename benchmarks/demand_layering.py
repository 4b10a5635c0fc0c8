"""Demand Layering's tables: sizes of its networks, and its pipelines as a calibrated simulation next to its figures.

    python -m benchmarks.demand_layering            # Tables I and II, simulated: seconds, nothing is run

Source: Ji et al., "Demand Layering for Real-Time DNN Inference with Minimized Memory Usage", RTSS 2022; the networks
are the authors' own, from the folder of shared data. A layer is read, copied to the GPU and computed. Seven numbers,
`XAVIER`, are fitted to the times of the paper's machine (Jetson AGX Xavier); memory is counted, not fitted.
"""

from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean

from cgraph.formats import darknet
from cgraph.ir.traverse import post_order
from cgraph.memory.pipeline_model import Act, Busy, Tell, Wait, ends_of
from cgraph.ops.leaf import Var
from cgraph.record import Record

DARKNET = Path(__file__).resolve().parents[2] / "shared" / "data" / "darknet_demand"
HEADER = 20  # bytes of a Darknet file before its first layer
MIB = 1 << 20
STEP = MIB  # step between sizes of a ring

SIZES = {  # layers, MiB of the file, MiB of the largest layer: the paper's Table I
    "yolov3": (107, 236.5, 18.0),
    "yolov4": (162, 245.8, 18.0),
    "yolov4-p6": (305, 487.2, 36.0),
    "resnet152": (206, 219.6, 9.0),
    "densenet201": (306, 65.6, 5.9),
}
PAPER = {  # memory and delay against preloading, in per cent: Table II
    "yolov3": {"seq": (-92.4, 44.9), "sync": (-84.8, 18.9), "async": (-92.4, 18.1), "async-md": (-83.1, 1.7),
               "2s": (-96.2, 21.8), "2s-md": (-84.8, 0.5)},
    "yolov4": {"seq": (-92.7, 52.1), "sync": (-85.4, 23.7), "async": (-92.7, 12.7), "async-md": (-83.1, 1.7),
               "2s": (-96.3, 21.5), "2s-md": (-89.3, 0.4)},
    "yolov4-p6": {"seq": (-92.6, 70.2), "sync": (-85.2, 38.4), "async": (-92.6, 8.7), "async-md": (-84.2, 2.0),
                  "2s": (-96.3, 16.7), "2s-md": (-85.7, 0.3)},
    "resnet152": {"seq": (-95.9, 45.8), "sync": (-91.8, 11.4), "async": (-95.9, 2.7), "async-md": (-92.0, 1.2),
                  "2s": (-98.0, 5.1), "2s-md": (-93.9, 0.2)},
    "densenet201": {"seq": (-91.0, 65.4), "sync": (-82.0, 22.9), "async": (-91.0, 2.0), "async-md": (-86.9, 1.0),
                    "2s": (-95.5, 8.9), "2s-md": (-88.2, 0.4)},
}  # fmt: skip


class Layer(Record):
    """A layer, in the paper's terms.

    Fields
        nbytes: bytes of its parameters in Darknet's file
        read: bytes that a run reads of it, batch norm folded
        operations: multiplications and additions
        moved: bytes that its kernel reads and writes: parameters, and an image as large as the result in and out
    """

    nbytes: int
    read: int
    operations: int
    moved: int


class Machine(Record):
    """Speeds of a machine, and the cost of each start.

    Fields
        operations, moved: operations and bytes per second of a kernel; the slower one counts
        read, copied: bytes per second
        kernel_start, read_start, copy_start: seconds of each
    """

    operations: float
    moved: float
    read: float
    copied: float
    kernel_start: float
    read_start: float
    copy_start: float


XAVIER = Machine(858e9, 68e9, 5.1e9, 26e9, 0.03e-3, 0.18e-3, 0.05e-3)


def layers_of(name: str) -> list[Layer]:
    """Return the layers of one of the paper's networks, from its description only."""
    model = darknet.load(DARKNET / f"{name}.cfg")
    taken: dict[str, list[Var]] = {}
    for x in post_order(model.outputs):
        if isinstance(x, Var) and x is not model.inputs[0]:
            taken.setdefault(x.name.rpartition(".")[0], []).append(x)
    found = []
    for key, value in model.values.items():
        arrays = taken.get(key, [])
        filters = [x for x in arrays if x.ndim > 1]
        read = sum(x.nbytes for x in arrays if x.ndim > 1 or x.name.endswith(".bias"))
        operations = 2 * sum(x.size // x.shape[0] for x in filters) * value.size
        found.append(Layer(sum(x.nbytes for x in arrays), read, operations, 2 * value.nbytes + read))
    return found


class Times(Record):
    """Seconds of each layer, and its bytes in a ring.

    Fields
        read, copied: 0 for a layer without parameters
    """

    nbytes: tuple[int, ...]
    read: tuple[float, ...]
    copied: tuple[float, ...]
    kernel: tuple[float, ...]


def times_on(machine: Machine, layers: Sequence[Layer]) -> Times:
    """Return the times of reading, copying and computing each layer."""
    m = machine
    return Times(
        tuple(x.nbytes for x in layers),
        tuple(m.read_start + x.read / m.read if x.read else 0.0 for x in layers),
        tuple(m.copy_start + x.read / m.copied if x.read else 0.0 for x in layers),
        tuple(max(x.operations / m.operations, x.moved / m.moved) + m.kernel_start for x in layers),
    )


# -- the paper's pipelines ---------------------------------------------------------------------------------------------


def sequential(t: Times, _: int) -> list[list[Act]]:
    """Return the delay of the stages one after another: equation 5."""
    return [[Busy(x) for parts in zip(t.read, t.copied, t.kernel) for x in parts]]


def synchronous(t: Times, _: int) -> list[list[Act]]:
    """Return the delay if all stages begin a cycle together, each with the layer after that of the next stage: equation
    7.
    """
    stages, count = (t.read, t.copied, t.kernel), len(t.kernel)
    scripts: list[list[Act]] = []
    for s, seconds in enumerate(stages):
        script: list[Act] = []
        for cycle in range(count + len(stages) - 1):
            script += [Wait(str(other), cycle) for other in range(len(stages))]
            if 0 <= cycle - s < count:
                script.append(Busy(seconds[cycle - s]))
            script.append(Tell(str(s), cycle + 1))
        scripts.append(script)
    return scripts


def asynchronous(t: Times, ring: int) -> list[list[Act]]:
    """Return the delay if every stage runs at its own pace, with a ring before the copy and one before the kernel."""
    return staged((t.read, t.copied, t.kernel), rooms(t.nbytes, ring))


def two_stage(t: Times, ring: int) -> list[list[Act]]:
    """Return the delay if kernels read the ring that is read into."""
    return staged((t.read, t.kernel), rooms(t.nbytes, ring))


def staged(stages: Sequence[Sequence[float]], room: Sequence[int]) -> list[list[Act]]:
    """Return the scripts of stages with rings between them, all of one size.

    Parameters
        stages: seconds of each item in each stage
        room: for each item, how many items must have left a ring before it enters
    """
    scripts: list[list[Act]] = []
    for s, seconds in enumerate(stages):
        script: list[Act] = []
        for i, time in enumerate(seconds):
            script += [Wait(str(s - 1), i + 1)] if s else []
            script += [Wait(str(s + 1), room[i])] if s + 1 < len(stages) else []
            script += [Busy(time), Tell(str(s), i + 1)]
        scripts.append(script)
    return scripts


def rooms(sizes: Sequence[int], ring: int) -> list[int]:
    """Return, for each item, how many items must leave before it fits: whole items, each after the last one or at 0."""
    held: deque[tuple[int, int]] = deque()  # positions of the items that have not been released yet, oldest first
    found, gone, at = [], 0, 0
    for size in sizes:
        at = at if at + size <= ring else 0
        while any(low < at + size and at < high for low, high in held):
            held.popleft()
            gone += 1
        held.append((at, at + size))
        found.append(gone)
        at += size
    return found


class Mode(Record):
    """One of the paper's pipelines.

    Fields
        scripts: the scripts of its stages for a ring's size
        rings: number of rings (or buffers) of the size of the largest layer
        is_swept: the ring is the smallest with the least delay, in steps of 1 MiB
    """

    scripts: Callable[[Times, int], list[list[Act]]]
    rings: int
    is_swept: bool = False


MODES = {
    "seq": Mode(sequential, 2),
    "sync": Mode(synchronous, 4),
    "async": Mode(asynchronous, 2),
    "async-md": Mode(asynchronous, 2, True),
    "2s": Mode(two_stage, 1),
    "2s-md": Mode(two_stage, 1, True),
}


def delay_of(mode: Mode, t: Times, ring: int) -> float:
    """Return the seconds from the first read to the last kernel."""
    return max(ends[-1] for ends in ends_of(mode.scripts(t, ring)) if ends)


def ring_of(mode: Mode, t: Times) -> int:
    """Return the bytes of each ring."""
    largest = max(t.nbytes)
    if not mode.is_swept:
        return largest
    return min(range(largest, sum(t.nbytes), STEP), key=lambda ring: (round(delay_of(mode, t, ring), 6), ring))


def against_preloading(mode: Mode, t: Times) -> tuple[float, float]:
    """Return memory and delay as in Table II: per cent more than two copies of the weights, and than kernels alone.

    Sizes are those that the paper prints, in tenths of MiB.
    """
    ring = ring_of(mode, t)
    return (
        100 * (mode.rings * tenths(ring) / (2 * tenths(HEADER + sum(t.nbytes))) - 1),
        100 * (delay_of(mode, t, ring) / sum(t.kernel) - 1),
    )


def tenths(nbytes: int) -> float:
    """Return MiB as the paper prints them."""
    return round(nbytes / MIB, 1)


# -- tables ------------------------------------------------------------------------------------------------------------


def sizes_table() -> list[str]:
    lines = ["| network | layers | file MiB | largest MiB | paper |", "|---|---:|---:|---:|---|"]
    for name, (count, whole, largest) in SIZES.items():
        layers = layers_of(name)
        file, most = HEADER + sum(x.nbytes for x in layers), max(x.nbytes for x in layers)
        lines.append(f"| {name} | {len(layers)} | {tenths(file)} | {tenths(most)} | {count}, {whole}, {largest} |")
    return lines


def modes_table() -> list[str]:
    lines = [f"| memory %, delay % | {' | '.join(MODES)} |", f"|---|{'---|' * len(MODES)}"]
    apart = []
    for name, rows in PAPER.items():
        times = times_on(XAVIER, layers_of(name))
        found = {key: against_preloading(mode, times) for key, mode in MODES.items()}
        lines.append(f"| {name}, paper | " + " | ".join(f"{m:.1f} {d:+.1f}" for m, d in rows.values()) + " |")
        lines.append(f"| {name}, simulated | " + " | ".join(f"{m:.1f} {d:+.1f}" for m, d in found.values()) + " |")
        apart += [abs(found[key][1] - rows[key][1]) for key, mode in MODES.items() if not mode.is_swept]
    return [*lines, "", f"{len(apart)} delays without -md: {mean(apart):.2f} points apart on average"]


def main() -> None:
    print("\n".join([*sizes_table(), "", *modes_table()]))


if __name__ == "__main__":
    main()
