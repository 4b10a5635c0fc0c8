"""Networks of the other tests and all that differ from one in a single place: their physical graphs are recorded.

For processors with and without vectors, pairs and tiles, whatever this one has. ``python -m
tests.lowering.test_perturbed_lowerings`` writes `perturbed.txt` anew, and with a name it prints all graphs of one
network.
"""

import sys
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from cgraph.ir.spec import dtype_of
from cgraph.kernels.isa.ptx import gpu_target
from cgraph.kernels.machines import machine_named
from cgraph.kernels.mapped import in_place
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pipeline import lower_graph, to_physical
from cgraph.lowering.rounded_layers import RoundedLayers
from cgraph.memory.layout import NodeFacts
from cgraph.ops.prefix import prefix
from cgraph.passes import rewrite_graph
from cgraph.passes.integers.compute_integers import compute_integers
from cgraph.passes.make_contiguous import make_contiguous, order_results
from cgraph.passes.weights_on_disk import slice_constants
from cgraph.record import replace
from tests.lowering import test_image_lowerings, test_int8_lowerings, test_pack_matmul, test_tile_lowerings
from tests.support.lowered import bytes_of, floats, volumes
from tests.support.perturbed import REFUSED, Outputs, digest, perturbed, shape_of_graph

RECORD = Path(__file__).with_name("perturbed.txt")
WIDE, NARROW, SMALL = (machine_named(name).target for name in ("avx512", "avx2", "cortex-m7"))
TARGETS = {
    "avx512": WIDE,
    "avx2": NARROW,
    "cortex-m7": SMALL,
    "pairs": replace(WIDE, bf16="emulated", tiles=""),
    "tiles": replace(WIDE, bf16="", tiles="emulated"),
}
MOST, FEWER = 40, 12
"""Graphs of one network on one target: those whose names have the smallest checksums."""


def whole(*shape: int) -> np.ndarray:
    """Small whole numbers, none of them alike along any axis."""
    numbers = np.random.default_rng(sum(shape)).permutation(int(np.prod(shape))) % 17 - 8
    return numbers.reshape(shape).astype("f4") / 8


def x(*shape: int, name: str = "x", dtype: str = "float32") -> cg.Var:
    return cg.Var(shape, dtype, name)


def between(make, channels: int = 17) -> Outputs:
    """What stands between two convolutions of images."""
    middle = make(cg.relu(cg.conv2d(x(2, 3, 7, 8), whole(channels, 3, 3, 3), 1, 1)))
    middle = middle if isinstance(middle, list) else [middle]
    images = [y for y in middle if y.ndim == 4 and y.dtype == np.float32][:1]
    return (*(cg.conv2d(y, whole(5, y.shape[1], 3, 3), 1, 1) for y in images), *middle[1:])


def pairs_of_bytes(zero: int) -> cg.Node:
    integers = cg.Const((np.arange(64 * 7).reshape(64, 7) % 255 - 127).astype("i1"))
    rows = cg.dequantize(cg.quantize(x(2, 20, 64), np.float32(0.02), zero, "uint8"), np.float32(0.02), zero)
    return cg.quantize(rows @ cg.dequantize(integers, np.float32(0.01)), np.float32(0.05), 7, "uint8")


OF_TABLE = {
    f"images, {name}": between(network.between, network.channels)
    for name, network in test_image_lowerings.NETWORKS.items()
}
OF_TABLE |= {f"bytes, {name}": tuple(network.outputs) for name, network in test_int8_lowerings.NETWORKS.items()}
OF_TABLE |= {f"tiles, {name}": between(make, 64) for name, make in test_tile_lowerings.BETWEEN.items()}
OF_TABLE |= {f"packed, {name}": (node,) for name, node in test_pack_matmul.PACKED.items()}
OF_TABLE |= {f"unpacked, {name}": (node,) for name, node in test_pack_matmul.UNPACKED.items()}
W = cg.Const(whole(32, 48), name="w")
FEW = x(1, 4, 9, 8)
OWN: dict[str, Outputs] = {
    "floats": floats(whole),
    "volumes": volumes(whole),
    "all uint8": compute_integers(bytes_of("uint8", whole)),
    "all int8": compute_integers(bytes_of("int8", whole)),
    "product of bytes": compute_integers((pairs_of_bytes(128),)),
    "products": (x(40, 32) @ W, cg.relu(x(1, 32, name="row") @ W), cg.exp(x(2, 3, 32, name="y")) @ W),
    "computed products": (cg.relu(x(3, 64, 32) @ x(32, 48, name="f")), x(3, 64, 40, name="u") @ x(3, 40, 50, name="v")),
    "short products": (x(3, 4, 32) @ x(32, 48, name="f"), x(300, 64, name="u") @ x(64, 3, name="v")),
    "attention": (
        cg.softmax(x(1, 2, 64, 32) @ cg.swapaxes(x(1, 2, 64, 32, name="k"), -1, -2), -1) @ x(1, 2, 64, 32, name="v"),
    ),
    "few filters": (cg.conv2d(FEW, whole(4, 1, 3, 2), (1, 2), (2, 0, 1, 1), (1, 2), 4), cg.max_pool2d(FEW, 2)),
    "pixels": (cg.conv_transpose2d(x(1, 3, 60, 50), whole(3, 2, 3, 2), (2, 2), (1, 0, 0, 1)) + whole(2, 1, 1),),
    "pixels side by side": (cg.conv_transpose2d(x(2, 16, 9, 8), whole(16, 8, 2, 3), (2, 3)),),
    "padding": (
        cg.conv2d(x(1, 16, 4, 5), whole(32, 16, 3, 3), 1, 4, 4),
        cg.conv2d(x(1, 16, 9, 9), whole(16, 16, 3, 3), 1, 1),
    ),
    "shared filters": tuple(
        cg.conv2d(x(1, 16, 9, 9, name=name), F, stride) * whole(16, 1, 1) * factor
        for F in [cg.Const(whole(16, 16, 3, 3))]
        for name, stride, factor in (("u", 1, 2.0), ("v", 1, 3.0), ("w", 2, 2.0))
    ),
    "in a loop": (
        cg.scan(lambda s, v: (cg.tanh(s @ whole(32, 32) + v), s @ v.T), x(64, 32), x(4, 64, 32, name="v"))[0],
    ),
}
IMAGE, FILTERS = x(2, 32, 13, 12), x(64, 32, 3, 3, name="f")
LAYER = cg.relu(cg.conv2d(IMAGE, FILTERS, (1, 2), 1))
OWN["training"] = tuple(cg.gradient(cg.sum(cg.max_pool2d(LAYER, 2)), [IMAGE, FILTERS]))
COUNT, TALL = x(name="n", dtype="int64"), x(64, 160)
OWN["first rows"] = (
    prefix(cg.softmax(prefix(cg.exp(prefix(TALL, COUNT)) @ whole(160, 160), COUNT)), COUNT),
    prefix(cg.concat([TALL, cg.sin(TALL)], 1), COUNT),
)
OWN["large matrices"] = (
    cg.relu(x(1, 200, name="row") @ cg.Const(whole(200, 300)) + x(1, 300, name="b")),
    x(1, 300, name="other") @ cg.Const(whole(200, 300)).T,
    x(40, 200, name="rows") @ cg.Const(whole(200, 300)),
    cg.conv2d(x(1, 64, 9, 8), whole(96, 64, 3, 3), 1, 1),
    cg.swapaxes(x(3, 200, 100, name="turned"), 1, 2),
)
NETWORKS = {f"{name}, {target}": (outputs, target) for name, outputs in OWN.items() for target in TARGETS}
NETWORKS |= {
    f"{name}, {target}": (outputs, target) for name, outputs in OF_TABLE.items() for target in ("avx512", "tiles")
}


def lowered(outputs: Outputs, target: str) -> Outputs:
    if target in WAYS:
        with np.errstate(all="ignore"):
            return WAYS[target](outputs)
    layers = RoundedLayers() if target in ("pairs", "tiles") else None
    options = LoweringOptions(pairs=layers is not None, layers=layers)
    with np.errstate(all="ignore"):
        return to_physical(rewrite_graph(outputs), TARGETS[target], options)


WAYS: dict[str, Callable[[Outputs], Outputs]] = {
    "as written": lambda roots: lower_graph(roots, WIDE, LoweringOptions(passes=False)),
    "all passes": lambda roots: lower_graph(roots, WIDE, LoweringOptions(winograd=False)),
    "small": lambda roots: lower_graph(roots, SMALL, LoweringOptions()),
    "held": lambda roots: lower_graph(roots, WIDE, LoweringOptions(storage_dtype=dtype_of("bfloat16"))),
    "on a GPU": lambda roots: lower_graph(roots, gpu_target(9, 0), LoweringOptions(pairs=True)),
    "named layers": lambda roots: lower_graph(
        roots, TARGETS["pairs"], LoweringOptions(pairs=True, layers=RoundedLayers(frozenset(["w", "conv2d"])))
    ),
    "in slices": lambda roots: slice_constants(lower_graph(roots, WIDE, LoweringOptions()), 1 << 13, in_place),
    "contiguous": lambda roots: contiguous(lower_graph(roots, NARROW, LoweringOptions()), NodeFacts(NARROW)),
}
NETWORKS |= {f"{name}, {way}": (outputs, way) for name, outputs in OWN.items() for way in WAYS}


def contiguous(roots: Outputs, facts: NodeFacts) -> Outputs:
    return order_results(make_contiguous(roots, facts), facts)


def recorded(name: str) -> list[tuple[str, str]]:
    """Return what becomes of each graph: its name, and a text."""
    outputs, target = NETWORKS[name]
    of_bytes = "Integer" in shape_of_graph(outputs)  # ops on bytes have constants only
    neighbours = [x for x in perturbed(outputs) if not (of_bytes and x[0].endswith("varies"))]
    chosen = sorted(neighbours, key=lambda x: zlib.crc32(f"{name}{x[0]}".encode()))[: FEWER if target in WAYS else MOST]
    found = []
    for place, other in [("as it is", outputs), *chosen]:
        try:
            found.append((place, shape_of_graph(lowered(other, target), contents=True)))
        except REFUSED as error:
            found.append((place, f"refused: {type(error).__name__}"))
    return found


def line(found: list[tuple[str, str]]) -> str:
    return f"{len(found)} {digest(''.join(f'{place}: {text}' for place, text in found))}"


@cache
def in_record() -> dict[str, str]:
    lines = RECORD.read_text(encoding="utf-8").splitlines() if RECORD.exists() else []
    return dict(tuple(x.rsplit(": ", 1)) for x in lines)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_physical_graphs_of_a_network_and_of_its_neighbours_are_recorded(name):
    hint = f"print them with: python -m tests.lowering.test_perturbed_lowerings {name!r}"
    assert line(recorded(name)) == in_record().get(name), f"other graphs than recorded; {hint}"


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.stdout.writelines(f"-- {place}\n{text}\n" for place, text in recorded(sys.argv[1]))
    else:
        RECORD.write_text("".join(f"{name}: {line(recorded(name))}\n" for name in NETWORKS), encoding="utf-8")
