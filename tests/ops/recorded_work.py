"""What each op asks for and calls, on machines that nothing runs on: bytes, permissions, rows, kernels and arguments.

``python -m tests.ops.recorded_work`` writes `recorded_work.txt` anew: a line for each row of the ops' cases and each
network of physical ops. ``python -m tests.ops.recorded_work NAME`` prints all facts of one of them, to be compared with
what the same command prints elsewhere.
"""

import hashlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import cgraph as cg
from cgraph.engine.export import machine_named
from cgraph.ir.graph import Node, apply
from cgraph.ir.spec import Bundle
from cgraph.ir.traverse import post_order
from cgraph.kernels.activation.calls import BoundedActivation
from cgraph.kernels.conv8.calls import Result
from cgraph.kernels.kernel import Pointer, View
from cgraph.kernels.mapped import in_place
from cgraph.kernels.target import Target
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pipeline import to_physical
from cgraph.ops.arithmetic import Add
from cgraph.ops.leaf import Const, ConstOp, Var, VarOp
from cgraph.ops.linear import Matmul
from cgraph.ops.physical.byte_matmul import ByteMatmul
from cgraph.ops.physical.first_rows import FirstRows, FirstWrites
from cgraph.ops.physical.frames import FromFrames, PadFrames, PoolFrames, ToFrames
from cgraph.ops.physical.in_place import InPlace
from cgraph.ops.physical.integer import PixelSum
from cgraph.ops.physical.matmul import MatmulEpilogue
from cgraph.ops.physical.ports import RowPort, RowSink, RowSource
from cgraph.ops.physical.rerun import Rerun
from cgraph.ops.physical.rotary import Rotary
from cgraph.ops.physical.rounded import RoundedMatmul
from cgraph.ops.physical.stencil import Stencil
from cgraph.ops.physical.table import ByteTable
from cgraph.ops.slicing import Slice
from cgraph.ops.take import Scatter
from cgraph.passes import rewrite_graph
from cgraph.passes.integers.compute_integers import compute_integers
from cgraph.passes.weights_on_disk import slice_constants
from cgraph.record import replace
from tests.ops.cases import CASES, Case
from tests.planning.recorded import without_places
from tests.support.emulated import emulate_tiles
from tests.support.lowered import bytes_of, floats, volumes
from tests.support.ops import own_views, work_of

RECORD = Path(__file__).with_suffix(".txt")
ROOM = "workspace"
PLACES = re.compile(r"target=Target\([^()]*\), |\w+\.py:\d+")
"""Parts of facts that say on which target or in which line a node was made."""


def machine(name: str) -> Target:
    return machine_named(name).target


TARGETS: dict[str, Callable[[], Target]] = {
    "avx512": lambda: machine("avx512"),
    "avx2": lambda: machine("avx2"),
    "cortex-m7": lambda: machine("cortex-m7"),
    "pairs": lambda: replace(machine("avx512"), bf16="emulated", tiles=""),
    "tiles": lambda: emulate_tiles(machine("avx512")),
}
"""The last two round factors of products to bfloat16."""
ROUNDING = ("pairs", "tiles")
LOGICAL = ("avx512", "cortex-m7")
"""Targets of logical ops."""


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("f4") / 10


def gradients_of_layers() -> list[Node]:
    """Filters that change between runs: packed in each run, and their gradients."""
    x, f, g = Var((2, 20, 11, 12), name="x"), Var((24, 20, 3, 2), name="f"), Var((24, 1, 2, 3), name="g")
    t, few = Var((24, 18, 3, 2), name="t"), Var((5, 3, 3, 3), name="few")
    y = cg.relu(cg.conv2d(x, f, (1, 2), (2, 0, 1, 1), (2, 1)))
    z = cg.conv2d(y, g, (2, 1), (1, 0, 0, 2), groups=24)
    up = cg.conv_transpose2d(z, t, (2, 3), (1, 0, 2, 1))
    images = cg.conv2d(x[:, :3], few, 2, 1)
    loss = cg.sum(cg.square(up)) + cg.sum(cg.sin(images))
    return [up, images, *cg.gradient(loss, [x, f, g, t, few])]


def products() -> list[Node]:
    """Products with constants, computed sides and addends of odd strides; attention with its options."""
    x, y, row = Var((3, 40, 33), name="x"), Var((3, 33, 18), name="y"), Var((18,), name="row")
    q, k, v = Var((2, 4, 24, 16), name="q"), Var((2, 2, 40, 16), name="k"), Var((2, 2, 40, 8), name="v")
    mask, start = Var((1, 4, 1, 40), name="mask"), Var((2,), "int64", "start")
    const = cg.relu(x @ weights(33, 50) + weights(50))
    odd = const + cg.transpose(x @ y @ weights(18, 40), (0, 2, 1)) @ weights(40, 50)
    options = {"causal": True, "window": 5, "scale": 0.3}
    heads = [
        cg.scaled_dot_product_attention(q, k, v),
        cg.scaled_dot_product_attention(q, k, v, mask, softcap=3.0),
        cg.scaled_dot_product_attention(q, k, v, start=start, **options),
        cg.scaled_dot_product_attention(q, k, v, safe=True, **options),
    ]
    return [const, odd, cg.tanh(x @ y + row), cg.gradient(cg.sum(cg.sin(x @ y)), x), *heads]


def regions() -> list[Node]:
    """Images, their features in boxes, joins of channels that begin within a block, and resizes."""
    x, boxes, level = Var((2, 12, 14, 10), name="x"), Var((6, 4), name="boxes"), Var((6,), "int64", "level")
    y = cg.relu(cg.conv2d(x, weights(20, 12, 3, 3), pad=1))
    small = cg.relu(cg.conv2d(y, weights(20, 20, 3, 3), 2, 1) + weights(20, 1, 1))
    cells = cg.roi_align_levels([y, small], boxes, cg.zeros((6,), "int64"), level, (4, 3), [0.5, 0.25])
    deep = cg.conv2d(cells, weights(8, 20, 3, 2), 1, (1, 0, 1, 1))
    wide = cg.conv2d(cg.resize(small, (14, 10), "linear"), weights(9, 20, 1, 1))
    joined = cg.concat([wide, cg.max_pool2d(y, 3, 1, 1), cg.avg_pool2d(y, (3, 1), 1, (1, 0), count_pad=True)], 1)
    top = cg.conv2d(joined, weights(16, 49, 3, 3), pad=(0, 1, 2, 3))
    return [deep, cg.sigmoid(top), cg.mean(top, (2, 3)), cg.flip(cells, 1)]


def gradients_of_images() -> list[Node]:
    """Pools, joins and features of boxes between convolutions, and their gradients."""
    x, boxes, level = Var((2, 16, 12, 10), name="x"), Var((6, 4), name="boxes"), Var((6,), "int64", "level")
    f, h = Var((24, 16, 3, 3), name="f"), Var((24, 24, 3, 3), name="h")
    y = cg.relu(cg.conv2d(x, f, pad=1))
    pooled = cg.max_pool2d(y, (3, 2), (2, 1), (1, 0, 0, 1))
    mean = cg.avg_pool2d(y, (3, 2), (2, 1), (1, 0, 0, 1))
    z = cg.tanh(cg.conv2d(pooled + mean, h, (1, 2), (0, 1, 2, 1)))
    cells = cg.roi_align_levels([y, z], boxes, cg.zeros((6,), "int64"), level, (3, 4), [0.5, 0.25])
    loss = cg.sum(cg.square(cg.conv2d(cells, weights(8, 24, 1, 1))))
    return [loss, *cg.gradient(loss, [x, f, h])]


def wide_layers() -> list[Node]:
    """Layers of long sums, with a residual, a depthwise one and a pool between them."""
    x = Var((1, 3, 20, 22), name="x")
    y = cg.relu(cg.conv2d(x, weights(96, 3, 3, 3), 2, 1) + weights(96, 1, 1))
    z = cg.relu(cg.conv2d(y, weights(96, 96, 3, 3), pad=1) + weights(96, 1, 1))
    both = cg.relu(cg.conv2d(z, weights(96, 96, 3, 2), 1, (1, 0, 1, 1), (1, 1)) + y)
    apart = cg.relu6(cg.conv2d(both, weights(96, 1, 3, 3), (2, 1), (1, 1, 0, 1), groups=96))
    wide = cg.conv2d(cg.max_pool2d(apart, 2, 1, (1, 0, 0, 1)), weights(130, 96, 1, 1))
    curved = cg.sigmoid(cg.conv2d(wide, weights(70, 130, 3, 3), pad=1, dilation=(2, 1)))
    return [cg.mean(curved, (2, 3)), cg.conv_transpose2d(curved, weights(70, 2, 2, 2), stride=2)]


def halos() -> list[Node]:
    """Residuals whose halo is not that of the result, and dilated windows by Winograd."""
    x = Var((1, 32, 24, 22), name="x")
    y = cg.relu(cg.conv2d(x, weights(64, 32, 3, 3), pad=1))
    z = cg.relu(cg.conv2d(y, weights(64, 64, 3, 3), pad=2, dilation=2) + y)
    last = cg.conv2d(z, weights(64, 64, 5, 5), pad=2) + y
    far = cg.conv2d(last, weights(64, 64, 3, 3), pad=(3, 2, 3, 2), dilation=(3, 2)) + z
    return [cg.tanh(far), cg.conv2d(y, weights(8, 64, 7, 7), pad=3)]


def wide_bytes() -> list[Node]:
    """Layers of bytes with long sums, a residual, and products of matrices with a constant and of two values."""

    def held(x: Node, scale: float, zero: int) -> Node:
        point = np.uint8(zero)
        return cg.dequantize(cg.quantize(x, np.float32(scale), point), np.float32(scale), point)

    def constant(*shape: int) -> Node:
        return cg.dequantize(np.rint(weights(*shape) * 400).astype("i1"), np.float32(0.004))

    x, rows = held(Var((1, 4, 20, 18), name="x"), 0.02, 120), held(Var((24, 80), name="rows"), 0.02, 110)
    y = held(cg.relu(cg.conv2d(x, constant(128, 4, 3, 3), stride=2, pad=1)), 0.03, 0)
    z = held(cg.conv2d(y, constant(128, 128, 3, 3), pad=1) + weights(128, 1, 1), 0.05, 100)
    both = held(cg.relu(z + y), 0.05, 3)
    last = held(cg.conv2d(both, constant(70, 128, 2, 1), pad=(0, 1, 1, 0), stride=(1, 2)), 0.1, 90)
    turned = held(rows @ constant(80, 65) + weights(65), 0.03, 128)
    product = held(turned @ cg.transpose(turned), 0.1, 20)
    return [last, cg.mean(both, (2, 3)), held(cg.tanh(last), 1 / 128, 128), turned, product]


def single_steps() -> list[Node]:
    """Ops that passes create, each on inputs."""
    x, n = Var((20, 12), name="x"), Var((), "int64", "n")
    heads, half, whole = Var((2, 6, 10), name="heads"), Var((2, 6, 5), name="half"), Var((2, 6, 10), name="whole")
    places, updates = Var((7,), "int64", "places"), Var((7, 12), name="updates")
    rotary = [apply(Rotary(kind), heads, t, t) for kind in (False, True) for t in (half, whole)]
    frames, volume = Var((12, 5, 4, 3), name="frames"), Var((2, 5, 6, 4, 3), name="volume")
    pools = [PoolFrames(2, 4, kind, 3, 2, (1, 2), 1, kind == "mean") for kind in ("max", "mean")]
    bytes_, table = Var((2, 6, 7, 5), "uint8", "bytes"), Const(np.arange(256).astype("u1")[::-1].copy())
    counted = [FirstRows(op) for op in (cg.exp(x).op, Matmul())]
    moved = Slice((1, 2), (18, 8), (1, 1)), Slice((2, 1), (18, 8), (1, 1))
    left, right, addend = Var((3, 17, 33), name="left"), Var((3, 33, 20), name="right"), Var((3, 17, 20), name="addend")
    one = Var((33, 20), name="one")
    bent = BoundedActivation(-1.0, 6.0, 0.25)
    computed = [
        apply(op(has, bent), left, y, *([addend] * has))
        for op, sides in ((MatmulEpilogue, (right,)), (RoundedMatmul, (right, one)))
        for y in sides
        for has in (False, True)
    ]
    of_bytes = Var((3, 17, 33), "uint8", "u"), Var((3, 33, 20), "uint8", "v")
    computed += [apply(ByteMatmul((3, 5), 0.25, Result(kind, 9)), *of_bytes) for kind in ("u1", "f4", "i4")]
    stencils = [
        apply(Stencil(Add(), ((0, moved[0]), (k, moved[1])), Slice((1, 2), (18, 8), (1, 1)), (20, 12), b), x, x + 1)
        for k, b in ((0, None), (1, None), (1, 0.5), (0, 0.5))
    ]
    return [
        *rotary,
        *computed,
        *stencils, *(apply(op, frames) for op in pools), apply(PadFrames(2, 1, 2), frames),
        apply(ToFrames(), volume), apply(FromFrames(2), frames), apply(PixelSum(), bytes_),
        apply(ByteTable(), bytes_, table), apply(Rerun(Matmul()), x, Var((12, 9), name="right")),
        apply(InPlace(Add(), 2, 1), x, x, n), apply(FirstWrites(Scatter(0, "set")), x, places, updates, n),
        apply(counted[0], x, n), apply(counted[1], x, Var((12, 9), name="right"), n),
        apply(RowSink(RowPort("rows", frames.spec)), frames), apply(RowSource(frames, frames.spec)),
    ]  # fmt: skip


NETWORKS: dict[str, Callable[[], Any]] = {
    "floats": lambda: floats(weights),
    "volumes": lambda: volumes(weights),
    "uint8": lambda: bytes_of("uint8", weights),
    "int8": lambda: bytes_of("int8", weights),
    "gradients of layers": gradients_of_layers,
    "products": products,
    "regions": regions,
    "gradients of images": gradients_of_images,
    "wide layers": wide_layers,
    "halos": halos,
    "wide bytes": wide_bytes,
}


class Names:
    """Texts of addresses: the operands, the result and the workspace by name, constants by what they hold."""

    def __init__(self, node: Node) -> None:
        self.known = {id(x): f"x{i}" for i, x in reversed([*enumerate(node.operands)])} | {id(node): "out"}

    def text(self, arg: Any) -> str:
        if not isinstance(arg, Pointer):
            return str(arg)
        base = self.known.get(id(arg.base)) or held(arg.base)
        return f"{base}+{arg.offset}"


def held(base: Any) -> str:
    """What the base of an address is."""
    if not isinstance(base, np.ndarray):
        return base if isinstance(base, str) else type(base).__name__
    kind = "c16" if base.dtype.kind == "c" else "f8"
    return f"{base.dtype}{list(base.shape)} of {np.abs(base.astype(kind)).sum():.3e}"


def call_text(call: Any, names: Names) -> str:
    kernel = call.kernel
    text = str(kernel) if type(kernel).__name__ in ("Kernel", "Repeat") else type(kernel).__name__
    return f"{text}: {', '.join(map(names.text, call.args))}; {call.tasks} in {call.chunk}"


def rows_text(node: Node) -> Iterator[str]:
    """Which operands are read row by row, and what bands of rows read and are."""
    specs = [x.spec for x in node.operands]
    rule = node.op.row_rule(*specs) if node.ndim and node.shape[0] else None
    if rule is not None:
        yield f"rows of {rule.operands}: {rule.first(1)}"
    cut = node.op.cut(*specs) if node.ndim > 2 and node.shape[2] else None
    if cut is not None:
        tables = [t and (list(t[0]), list(t[1])) for t in cut.reads]
        yield f"cut {tables} {cut.above} {cut.below} {cut.step}"
        rows, step = node.shape[2], cut.step
        for first, stop in ((0, max(step, cut.above + 1)), (step * (rows // (2 * step)), rows), (0, rows)):
            if first < stop <= rows:
                yield f"band {first} {stop}: {cut.band(first, stop)}"


def apart(x: View) -> View:
    """The view of an operand whose axes lie in the opposite order, two elements apart along each."""
    step, strides = 2 * x.itemsize, []
    for n in x.shape:
        strides.append(step)
        step *= n
    return View(x.at, x.shape, tuple(strides), x.dtype)


def calls_text(node: Node, work: Any, out: Any, xs: tuple[Any, ...]) -> Iterator[str]:
    """The kernel calls for these views, and the bytes of workspace that they need."""
    names, nbytes = Names(node), work.needs(out, xs)
    yield f"needs {nbytes}"
    for part in work.parts("", out, xs, View(Pointer(ROOM), (nbytes,), (1,), "u1") if nbytes else None):
        yield f"part {part.label} {part.times} {len(part.dead)}"
        for call in part.calls:
            yield call_text(call, names)


def facts_of(node: Node, target: Target) -> Iterator[str]:
    """All facts of a node, line by line."""
    op, work, specs = node.op, work_of(node, target), [x.spec for x in node.operands]
    out, xs = own_views(node), tuple(own_views(x) for x in node.operands)
    yield f"{op} -> {node.spec}: {op.name} {op.pure} {op.can_fail} {op.takes_storage} {op.takes_complex}"
    yield f"{work.nbytes} {work.overwrites} {work.strided} {tuple(work.strided_operands)} {work.over}"
    plain = [x for x in (*specs, node.spec) if not isinstance(x, Bundle)]
    if len(plain) == len(specs) + 1:
        yield f"{op.multiply_adds(*specs)} multiply-adds"
        yield from rows_text(node)
    yield from calls_text(node, work, out, xs)
    if work.strided and all(isinstance(x, View) for x in xs):
        yield from calls_text(node, work, out, tuple(map(apart, xs)))


SLICED = {"products": 2048, "wide layers": 60_000}
"""The most bytes of a slice of the constants of networks that are cut once more."""


def physical_nodes(name: str, target: str) -> list[Node]:
    """The nodes of a network after lowering."""
    machine, options = TARGETS[target](), LoweringOptions(pairs=target in ROUNDING)
    roots = to_physical(rewrite_graph(compute_integers(tuple(NETWORKS[name]()))), machine, options)
    return post_order(roots if name not in SLICED else (*roots, *slice_constants(tuple(roots), SLICED[name], in_place)))


def logical_nodes(case: Case) -> list[Node]:
    """The nodes of a row of the ops' cases in single precision, and of its gradients."""
    single = case.in_float32()
    xs = [Var(d.shape, d.dtype, f"x{i}") for i, d in enumerate(single.draws)]
    found = single.build(*xs)
    outputs = [found] if isinstance(found, Node) else list(found)
    smooth = [x for x in xs if x.dtype.kind in "fc"]
    parts = [y for y in outputs if y.dtype.kind == "f"]
    if case.smooth and smooth and parts:
        outputs += cg.gradient(sum(cg.sum(cg.sin(y)) for y in parts), smooth)
    return post_order(outputs)


def sections() -> dict[str, Callable[[], Iterator[tuple[Node, str]]]]:
    """For each name, its nodes with the names of targets."""

    def of_network(name: str) -> Iterator[tuple[Node, str]]:
        return ((node, t) for t in TARGETS for node in physical_nodes(name, t))

    def of_case(case: Case) -> Iterator[tuple[Node, str]]:
        nodes = logical_nodes(case)
        return ((node, t) for t in LOGICAL for node in nodes)

    def of_steps() -> Iterator[tuple[Node, str]]:
        nodes = post_order(single_steps())
        return ((node, t) for t in TARGETS for node in nodes)

    table: dict[str, Any] = {"single steps": of_steps}
    table |= {f"network of {name}": lambda name=name: of_network(name) for name in NETWORKS}
    for i, case in enumerate(CASES):
        table[f"{i} {case}"] = lambda case=case: of_case(case)
    return table


SECTIONS = sections()


def facts(name: str) -> list[str]:
    """All facts of a section."""
    lines = []
    targets = {t: make() for t, make in TARGETS.items()}
    for node, target in SECTIONS[name]():
        if not isinstance(node.op, ConstOp | VarOp):
            lines += [f"{target}: {PLACES.sub('', without_places(x))}" for x in facts_of(node, targets[target])]
    return lines


def line(name: str) -> str:
    """A line of the record: the number of facts, and their digest."""
    found = facts(name)
    text = "\n".join(found)
    return f"{name}: {len(found)} facts, {hashlib.sha256(text.encode()).hexdigest()[:12]}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.stdout.write("\n".join([*facts(" ".join(sys.argv[1:])), ""]))
    else:
        RECORD.write_text("".join(f"{line(name)}\n" for name in SECTIONS))
