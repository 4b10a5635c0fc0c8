"""What is recorded of kernels: the calls that each target makes of an op's views, and the LLVM text of each kernel.

``python -m tests.kernels.recorded`` writes `recorded.txt` anew. Read its difference: each line that changed is a graph
with other calls or other kernels, or a list of kernels whose text is another. ``python -m tests.kernels.recorded NAME``
prints all that is recorded of one line, to be compared with what the same command prints elsewhere.
"""

import hashlib
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import cgraph as cg
from cgraph.ir.graph import Node
from cgraph.ir.traverse import post_order
from cgraph.kernels.families import text_of
from cgraph.kernels.isa import arm, riscv, thumb, thumb_mve, wasm, x86
from cgraph.kernels.isa.ptx import gpu_target
from cgraph.kernels.kernel import Call, Kernel, Pointer, View
from cgraph.kernels.llvm.compile import emit_gpu_kernel, emit_kernel
from cgraph.kernels.prebuilt.kernel_list import FOLDER, kernel_of
from cgraph.kernels.target import Target
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pipeline import lower_graph
from cgraph.ops.leaf import ConstOp, Var, VarOp
from cgraph.record import replace
from tests.ops.cases import CASES
from tests.planning.recorded import GRAPHS as PLANNED
from tests.support.lowered import bytes_of, floats, volumes
from tests.support.ops import own_views, work_of

RECORD = Path(__file__).with_name("recorded.txt")
ICE_LAKE = x86.detect(x86.COMMON[4])
TARGETS: dict[str, Target] = {
    "avx512": ICE_LAKE,
    "tiles": replace(x86.detect(x86.COMMON[5]), tiles="amx"),
    "pairs": x86.detect(x86.COMMON[7]),
    "avx2": x86.AVX2,
    "portable": x86.PORTABLE,
    "neon": arm.I8MM,
    "neon-dot": arm.DOT,
    "wasm32": wasm.WASM,
    "cortex-m55": thumb_mve.CORTEX_M55,
    "cortex-m7": thumb.CORTEX_M7,
    "cortex-m7-bytes": thumb.CORTEX_M7_BYTES,
    "riscv64": riscv.RISCV64_GC,
    "gpu": gpu_target(9, 0),
    "gpu-blocks": replace(gpu_target(9, 0), has_blocks=True),
}
MOST = ("avx512", "neon", "gpu-blocks")
FLOATS = tuple(x for x in TARGETS if x not in ("neon-dot", "cortex-m7-bytes", "gpu"))
BYTES = tuple(x for x in TARGETS if x not in ("pairs", "riscv64", "gpu", "gpu-blocks"))
SINGLE = (*MOST, "avx2", "cortex-m7")
GPU_WORDS = 64
WEIGHTS = np.random.default_rng(0).normal(size=1 << 17).astype("float32")
Build = Callable[[], Node | Sequence[Node]]
GRAPHS: dict[str, tuple[Build, tuple[str, ...]]] = {}


def weights(*shape: int) -> np.ndarray:
    return WEIGHTS[: int(np.prod(shape))].reshape(shape)


def row(name: str, build: Build, targets: Sequence[str] = FLOATS) -> None:
    """A graph for these targets."""
    assert name not in GRAPHS, name
    GRAPHS[name] = build, tuple(targets)


for number, case in enumerate(CASES):
    for each in (case, case.in_float32()):
        is_single = each is not case
        if is_single or case.draws != case.in_float32().draws:
            row(
                f"{number} {case}{' f4' if is_single else ''}",
                lambda each=each: each.build(*(Var(d.shape, d.dtype, f"x{i}") for i, d in enumerate(each.draws))),
                SINGLE if is_single else MOST[:1],
            )

row("floats", lambda: floats(weights))
row("volumes", lambda: volumes(weights))
for kind in ("uint8", "int8"):
    row(f"{kind} network", lambda kind=kind: bytes_of(kind, weights), BYTES)

CONVS = (
    # images, filters, strides, pads, dilations, groups
    ((1, 3, 33, 47), (24, 3, 3, 5), (2, 1), (1, 2, 0, 3), (1, 1), 1),
    ((2, 32, 17, 23), (40, 32, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    ((1, 64, 14, 15), (64, 64, 3, 3), (1, 1), (1, 0, 2, 1), (2, 1), 1),
    ((1, 48, 9, 70), (80, 48, 1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    ((2, 48, 12, 10), (32, 48, 1, 1), (2, 3), (0, 0, 0, 0), (1, 1), 1),
    ((1, 40, 19, 22), (40, 1, 3, 5), (1, 2), (0, 1, 2, 3), (2, 1), 40),
    ((1, 32, 21, 20), (32, 1, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 32),
    ((2, 64, 11, 13), (96, 32, 3, 2), (1, 2), (1, 1, 0, 0), (1, 2), 2),
    ((1, 2, 31, 29), (6, 1, 7, 3), (3, 2), (3, 1, 2, 0), (1, 1), 2),
    ((1, 1, 28, 26), (6, 1, 5, 5), (1, 1), (2, 2, 2, 2), (1, 1), 1),
)


def image_layer(shape: tuple, filters: tuple, stride: tuple, pad: tuple, dilation: tuple, groups: int) -> list[Node]:
    """A convolution between others, with a residual, an activation, and what reads its gradients."""
    x = Var(shape, name="x")
    y = cg.conv2d(x, weights(*filters), stride, pad, dilation, groups) + weights(filters[0], 1, 1)
    z = Var(y.shape, name="z")
    return [cg.relu(y + z), cg.relu6(y), cg.sigmoid(y) * y, cg.conv2d(cg.relu(y), weights(8, y.shape[1], 1, 1))]


def image_gradients(
    shape: tuple, filters: tuple, stride: tuple, pad: tuple, dilation: tuple, groups: int
) -> list[Node]:
    x, f = Var(shape, name="x"), Var(filters, name="f")
    y = cg.conv2d(x, f, stride, pad, dilation, groups)
    return list(cg.gradient(cg.sum(cg.tanh(y)), [x, f]))


def byte_layer(kind: str, shape: tuple, filters: tuple, *moves: Any) -> list[Node]:
    low = np.iinfo(kind).min
    x = cg.dequantize(Var(shape, kind, "x"), np.float32(0.02), low + 100)
    f = np.rint(weights(*filters) * 40).clip(-127, 127).astype("i1")
    scale = np.abs(weights(filters[0], 1, 1, 1)) / 90 + np.float32(0.001)
    y = cg.conv2d(x, cg.dequantize(f, scale.astype("f4")), *moves) + weights(filters[0], 1, 1)
    z = cg.dequantize(Var(y.shape, kind, "z"), np.float32(0.03), low + 90)

    def held(v: Node, scale: float, zero: int) -> Node:
        return cg.quantize(v, np.float32(scale), low + zero, kind)

    return [held(y, 0.05, 7), held(cg.relu(y), 0.04, 0), held(cg.relu(y + z), 0.06, 3), y]


for number, conv in enumerate(CONVS):
    row(f"conv {number}", lambda conv=conv: image_layer(*conv))
    row(f"conv {number} gradients", lambda conv=conv: image_gradients(*conv), (*MOST, "tiles", "avx2", "portable"))
    for kind in ("uint8", "int8"):
        row(
            f"conv {number} {kind}",
            lambda conv=conv, kind=kind: byte_layer(kind, *conv),
            BYTES,
        )
TRANSPOSED = (
    ((1, 24, 9, 11), (24, 16, 3, 2), (2, 3), (1, 0, 2, 1), (1, 1), 1, (1, 2)),
    ((2, 32, 7, 8), (32, 20, 2, 2), (2, 2), (0, 0, 0, 0), (1, 1), 1, (0, 0)),
    ((1, 8, 6, 9), (8, 3, 3, 4), (1, 2), (1, 1, 0, 2), (2, 1), 2, (0, 1)),
    ((1, 3, 10, 12), (3, 2, 4, 4), (4, 4), (0, 0, 0, 0), (1, 1), 1, (0, 0)),
)
for number, moves in enumerate(TRANSPOSED):
    row(
        f"transposed {number}",
        lambda m=moves: cg.relu(cg.conv_transpose2d(Var(m[0], name="x"), weights(*m[1]), *m[2:]) + np.float32(1)),
    )
PRODUCTS = (
    ((37, 70), (70, 53)),
    ((1, 300), (300, 200)),
    ((3, 500), (500, 1)),
    ((2, 3, 40, 33), (2, 3, 33, 20)),
    ((5, 17, 64), (64, 96)),
    ((130, 3), (3, 140)),
    ((6, 1000), (1000, 7)),
)


def products(left: tuple, right: tuple) -> list[Node]:
    """Products of each order of axes, of Vars and of constants, with and without what follows."""
    x, y = Var(left, name="x"), Var(right, name="y")
    xt = cg.swapaxes(Var((*left[:-2], left[-1], left[-2]), name="xt"), -1, -2)
    yt = cg.swapaxes(Var((*right[:-2], right[-1], right[-2]), name="yt"), -1, -2)
    w, b = weights(*right), weights(right[-1])
    return [x @ y, xt @ y, x @ yt, xt @ yt, cg.relu(x @ w + b), cg.sigmoid(xt @ w), cg.tanh(x @ y + b) * 2]


for number, (left, right) in enumerate(PRODUCTS):
    row(f"product {number}", lambda left=left, right=right: products(left, right))
    row(
        f"product {number} f8",
        lambda a=left, b=right: Var(a, "float64", "x") @ Var(b, "float64", "y"),
        ("avx512", "gpu", "cortex-m7"),
    )
    row(
        f"product {number} bytes",
        lambda a=left, b=right: cg.quantize(
            cg.dequantize(Var(a, "uint8", "x"), np.float32(0.1), np.uint8(9))
            @ cg.dequantize(np.rint(weights(*b) * 30).clip(-127, 127).astype("i1"), np.float32(0.05))
            + weights(b[-1]),
            np.float32(0.4),
            np.uint8(100),
        ),
        BYTES,
    )


def attentions(b: int, h: int, kv: int, m: int, n: int, d: int, e: int, masked: str) -> list[Node]:
    q, k, v = Var((b, h, m, d), name="q"), Var((b, kv, n, d), name="k"), Var((b, kv, n, e), name="v")
    if kv != h:
        k, v = (cg.repeat(x, h // kv, 1) for x in (k, v))
    scores = q @ cg.swapaxes(k, -1, -2) * np.float32(d**-0.5)
    if masked == "bool":
        scores = cg.where(Var((b, 1, m, n), "bool", "mask"), scores, np.float32(-1e9))
    if masked == "added":
        scores = scores + Var((h, 1, n), name="mask")
    if masked == "causal":
        scores = cg.where(np.tri(m, n, n - m, dtype="bool"), scores, np.float32(-1e9))
    return [cg.softmax(scores) @ v]


for number, (sizes, masked) in enumerate(
    product(
        [(2, 4, 4, 40, 33, 16, 24), (1, 6, 2, 1, 70, 32, 32), (1, 2, 2, 65, 65, 8, 8)], ["", "bool", "added", "causal"]
    )
):
    row(f"attention {number}", lambda s=sizes, masked=masked: attentions(*s, masked))

POOLS = ((3, 2), (2, 3), (1, 0, 2, 1)), ((2, 2), (2, 2), (0, 0, 0, 0)), ((5, 3), (1, 1), (2, 1, 2, 1))


def pools(dtype: str, window: tuple, stride: tuple, pad: tuple) -> list[Node]:
    x = Var((2, 20, 17, 15), dtype, "x")
    ys = [cg.max_pool2d(x, window, stride, pad), cg.max_pool2d(x, window, stride, pad, True)]
    if dtype[0] == "f":
        ys += [cg.avg_pool2d(x, window, stride, pad), cg.avg_pool2d(x, window, stride, pad, True, True)]
        ys += [cg.gradient(cg.sum(cg.square(ys[0])), x), cg.max_pool2d(cg.conv2d(x, weights(24, 20, 1, 1)), window)]
        ys += [cg.global_max_pool(x), cg.global_avg_pool(cg.conv2d(x, weights(24, 20, 1, 1)))]
    return ys


for number, pool in enumerate(POOLS):
    for dtype in ("float32", "float64", "uint8", "int8"):
        row(f"pool {number} {dtype}", lambda p=pool, d=dtype: pools(d, *p), (*MOST, "tiles", "avx2", "cortex-m7"))

ROWS = (7, 300), (40, 16), (3, 5, 1030), (2000, 3)


def by_rows(shape: tuple, axis: int) -> list[Node]:
    x = Var(shape, name="x")
    n = shape[axis]
    ones = [1] * len(shape)
    ones[axis] = n
    scale = weights(*ones)
    centred = x - cg.mean(x, axis=axis, keepdims=True)
    rms = x / cg.sqrt(cg.mean(x * x, axis=axis, keepdims=True) + 1e-6)
    ys = [f(x, axis) for f in (cg.sum, cg.max, cg.argmin, cg.prod, cg.softmax, cg.log_softmax, cg.logsumexp, cg.cumsum)]
    ys += [centred / cg.sqrt(cg.mean(centred * centred, axis=axis, keepdims=True) + 1e-5) * scale + scale, rms * scale]
    ys += [cg.sum(x * x + scale, axis), cg.mean(cg.exp(x), axis), cg.any(x > 0, axis), cg.min(x.astype("int32"), axis)]
    ys += [cg.sort(x, axis), cg.argsort(x, axis, descending=True), *cg.top_k(x, min(n, 3), axis)]
    return ys


for number, shape in enumerate(ROWS):
    for axis in range(len(shape)):
        row(f"rows {number} along {axis}", lambda s=shape, a=axis: by_rows(s, a), (*MOST, "avx2", "cortex-m7", "gpu"))


def moved() -> list[Node]:
    ys: list[Node] = []
    for dtype in ("float32", "float64", "int16", "uint8", "bool", "complex64"):
        x = Var((6, 40, 34), dtype, f"x {dtype}")
        ys += [cg.transpose(x, (2, 0, 1)) for _ in range(1)]
        ys += [cg.concat([x, x[:, ::-1]], 1), cg.flip(x, 2), x[::2, 3:, ::3], cg.roll(x, 5, 1), cg.repeat(x, 2, 1)]
        ys += [cg.pad(x, ((1, 0), (0, 2), (3, 1))), cg.tile(x, (1, 2, 1)), cg.stack([x, x], -1), cg.swapaxes(x, 1, 2)]
        ys += [cg.take(x, Var((9,), "int32", "i"), 1), cg.reshape(cg.transpose(x), (34, -1))]
    return [y + 0 if y.dtype.kind in "fc" else cg.reshape(cg.copy(y), (-1,)) if hasattr(cg, "copy") else y for y in ys]


row("moved", moved, (*MOST, "avx2", "portable", "cortex-m7"))


def resized() -> list[Node]:
    x = Var((2, 20, 9, 11), name="x")
    hows = [("nearest", "half_pixel"), ("nearest", "asymmetric"), ("linear", "half_pixel"), ("linear", "align_corners")]
    sizes = (18, 22), (5, 30), (27, 7)
    plain = [cg.resize(x, size, *how) for size in sizes for how in hows]
    return plain + [cg.resize(cg.conv2d(x, weights(24, 20, 1, 1)), size, *how) for size in sizes for how in hows]


row("resized", resized, (*MOST, "tiles", "avx2", "portable", "cortex-m7"))


def spectra() -> list[Node]:
    ys: list[Node] = []
    for n in (8, 30, 64, 77, 251, 1024):
        x, z = Var((3, n), name=f"x{n}"), Var((3, n, 2), name=f"z{n}")
        ys += [cg.fft(z), cg.ifft(z), cg.rfft(x), cg.irfft(z), cg.fft(Var((n, 5, 2), "float64", f"c{n}"), axis=0)]
    return ys


row("spectra", spectra, MOST)


def placed_rows() -> list[Node]:
    x, i = Var((50, 24), name="x"), Var((33,), "int64", "i")
    at = Var((33, 24), "int32", "at")
    y, z = Var((33, 24), name="y"), Var((24, 33), name="z")
    return [
        *(cg.scatter(x, i, y, how) for how in ("set", "add", "multiply", "max", "min")),
        *(cg.put_along_axis(x, at, y, 0, how) for how in ("set", "add")),
        cg.scatter_add(cg.transpose(x), i, z, 1),
        cg.take(x, i),
        cg.take(x, i % 24, 1),
        cg.take_along_axis(x, at, 0),
        cg.gather_nd(x, Var((7, 2), "int32", "nd")),
        cg.one_hot(i, 11),
        cg.searchsorted(cg.sort(x[:, 0]), y, "left"),
        *cg.nonzero(x > 0, 20),
        cg.triu(x, 2),
        cg.diagonal(x, -3),
    ]


row("placed rows", placed_rows, (*MOST, "avx2", "cortex-m7"))


for name, make in PLANNED.items():

    def planned(make: Any = make) -> list[Node]:
        outputs, _, more = make()
        some = outputs.values() if isinstance(outputs, dict) else outputs if isinstance(outputs, list) else [outputs]
        return [*some, *more.get("updates", {}).values()]

    row(f"planned {name}", planned, (*SINGLE, "tiles"))


def contractions() -> list[Node]:
    x, y, z = Var((4, 30, 6, 20), name="x"), Var((6, 20, 50), name="y"), Var((4, 50, 30), name="z")
    u, v = Var((300,), name="u"), Var((70, 300), name="v")
    forms = ("abcd,cde->abe", "abcd,cde->eba", "abcd,cde->cbe", "abcd,cde->ace", "abcd,cde->abce")
    ys = [cg.einsum(form, x, y) for form in forms]
    ys += [cg.einsum("abcd,aeb->cde", x, z), cg.einsum("aeb,aeb->ab", z, z), cg.einsum("abcd,abcd->dc", x, x)]
    return [*ys, v @ u, u @ cg.transpose(v), cg.tensordot(x, y, ((2, 3), (0, 1))), cg.einsum("i,j->ij", u, v[:, 0])]


def long_rows() -> list[Node]:
    ys: list[Node] = []
    for dtype in ("float32", "int64", "uint8"):
        x = Var((3, 5000), dtype, f"x {dtype}")
        ys += [cg.sort(x, 1), cg.argsort(x, 1, descending=True), *cg.top_k(x, 40, 1), *cg.unique(x, 100)]
        ys += [cg.searchsorted(cg.sort(x[0]), x[1], side) for side in ("left", "right")]
        ys += [*cg.nonzero(x > 1, 900), cg.cumsum(x, 1), cg.sum(x), cg.argmax(x, 1)]
    return ys


def many_places() -> list[Node]:
    x, i, y = Var((700, 24), name="x"), Var((3000,), "int64", "i"), Var((3000, 24), name="y")
    at = Var((3000, 3), "int32", "at")
    hows = ("set", "add", "multiply", "max", "min")
    volume = Var((30, 20, 10, 6), name="volume")
    ys = [cg.scatter(x, i, y, how) for how in hows]
    return [
        *ys,
        cg.scatter_add(x, i, y),
        cg.gather_nd(volume, at),
        cg.take(x, i),
        x[i, i % 24],
        cg.triu(x),
        cg.tril(x, 9),
    ]


def boxes() -> list[Node]:
    x, place, batch = Var((2, 20, 30, 28), name="x"), Var((9, 4), name="boxes"), Var((9,), "int64", "batch")
    ys = [cg.roi_align(x, place, batch, (3, 5), n, 0.5, aligned) for n in (1, 2) for aligned in (True, False)]
    return [*ys, *(cg.gradient(cg.sum(y * y), x) for y in ys)]


for make in (contractions, long_rows, many_places, boxes):
    row(make.__name__, make, SINGLE)


LISTS = ("avx512", "avx2", "tiles")
LISTED = [(name, x) for name in LISTS for x in (FOLDER / f"{name}.txt").read_text().splitlines()]
MORE = [tuple(x.split(" ", 1)) for x in Path(__file__).with_name("more_kernels.txt").read_text().splitlines()]
"""Kernels that are in no list and that no graph here calls, each after the name of its target."""
FAMILIES = tuple(sorted({x.partition("(")[0] for _, x in LISTED + MORE}))


def lowered(name: str, target: Target) -> tuple[Node, ...]:
    """The steps of a graph on a target, in order."""
    found = GRAPHS[name][0]()
    roots = (found,) if isinstance(found, Node) else tuple(found)
    options = LoweringOptions(pairs=target.multiplies_bfloat16)
    return tuple(x for x in post_order(lower_graph(roots, target, options)) if not isinstance(x.op, ConstOp | VarOp))


class Names:
    """Names of the memory that calls address: equal in each process."""

    def __init__(self, known: dict[int, str]) -> None:
        self.known, self.kept = known, []

    def of(self, base: Any) -> str:
        if isinstance(base, str):
            return base
        if id(base) not in self.known:
            self.kept.append(base)
            array = getattr(getattr(base, "op", None), "array", base)
            self.known[id(base)] = (
                hashlib.sha256(array.tobytes()).hexdigest()[:8]  # equal constants may be one
                if isinstance(array, np.ndarray)
                else f"{type(base).__name__}{len(self.kept)}"
            )
        return self.known[id(base)]

    def word(self, value: Any) -> Any:
        return f"{self.of(value.base)}+{value.offset}" if isinstance(value, Pointer) else value


def scattered(view: Any) -> Any:
    """A view of as many elements, first axes fastest, the last axis from its end, with gaps."""
    if type(view) is not View:
        return view
    step, strides = 2 * int(view.dtype[1:]), []
    for n in view.shape:
        strides.append(step)
        step *= n
    if not strides:
        return view
    end = max(view.shape[-1] - 1, 0) * strides[-1]
    return View(view.at + end, view.shape, (*strides[:-1], -strides[-1]), view.dtype)


def calls_of(node: Node, target: Target) -> Iterator[tuple[Call | None, str]]:
    """The calls of a node over contiguous views, and over scattered ones where it takes them; each with its text."""
    work = work_of(node, target)
    out, xs = own_views(node), tuple(map(own_views, node.operands))
    variants = [xs]
    if work.strided or work.strided_operands:
        variants.append(
            tuple(scattered(x) if work.strided or i in work.strided_operands else x for i, x in enumerate(xs))
        )
    yield None, f"{node.op.name} {node.spec} {work.nbytes} {work.overwrites} {work.strided}"
    for views in variants:
        known = {id(node): "out", id(work): "room"}
        known.update((id(x), f"x{i}") for i, x in reversed([*enumerate(node.operands)]))
        names = Names(known)
        nbytes = work.needs(out, views)
        room = View(Pointer(work), (nbytes,), (1,), "u1") if nbytes else None
        yield None, f"needs {nbytes}"
        for part in work.parts("", out, views, room):
            yield None, f"{part.label} {part.times}"
            for call in part.calls:
                words = [names.word(x) for x in call.args]
                if isinstance(call.kernel, Kernel):
                    text = text_of(call.kernel, words)
                else:
                    fields = (
                        {k: v for k, v in vars(call.kernel).items() if isinstance(v, int)}
                        if hasattr(call.kernel, "__dict__")
                        else ""
                    )
                    text = f"{type(call.kernel).__name__} {fields} {words}"
                yield call, f"{own_text(text)} x {call.tasks} by {call.chunk}"


def own_text(text: str) -> str:
    """A text without places in memory or in files, and without names that Numba makes."""
    return re.sub(r"(?<= at )0x[0-9a-f]+|\w+\.py:\d+|(?<=_)[0-9a-f]{24}|_ZN\w+", "", text)


@cache
def kernel_text(kernel: Kernel, target: Target) -> str:
    """The LLVM text of a kernel, without this machine's name."""
    emitted = (
        emit_gpu_kernel(kernel, "kernel", GPU_WORDS, target)
        if target.code == "ptx"
        else emit_kernel(kernel, "kernel", target)
    )
    text = re.sub(r"(?m)^target (triple|datalayout).*\n", "", emitted.text)
    return f"{emitted.is_final} {emitted.is_narrow} {digest([own_text(text)])}"


def digest(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8]


def facts(name: str, target: str) -> tuple[list[str], list[str]]:
    """The calls of a graph on a target, and its kernels with digests of their text."""
    calls, kernels = [], {}
    for node in lowered(name, TARGETS[target]):
        for call, text in calls_of(node, TARGETS[target]):
            calls.append(text)
            if call is not None and isinstance(call.kernel, Kernel):
                kernels[call.kernel] = None
    texts = [f"{own_text(str(x))} {kernel_text(x, TARGETS[target])}" for x in kernels]
    return calls, texts


def graph_line(name: str) -> str:
    found = []
    for target in GRAPHS[name][1]:
        calls, kernels = facts(name, target)
        found.append(f"{target} {len(calls)} {digest(calls)} {len(kernels)} {digest(kernels)}")
    return f"{name}: {', '.join(found)}"


def listed(family: str) -> list[tuple[Kernel, Target]]:
    """Every third kernel of a family that networks use, and all of `MORE`."""
    own = [x for x in LISTED if x[1].startswith(f"{family}(")][::3]
    own += [x for x in MORE if x[1].startswith(f"{family}(")]
    return [(kernel_of(line), TARGETS[target]) for target, line in own]


def listed_facts(family: str) -> list[str]:
    return [f"{kernel} {target.name} {kernel_text(kernel, target)}" for kernel, target in listed(family)]


def listed_line(family: str) -> str:
    texts = listed_facts(family)
    return f"{family}: {len(texts)} {digest(texts)}"


def lines() -> Iterator[str]:
    yield from map(graph_line, GRAPHS)
    yield from map(listed_line, FAMILIES)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for target in GRAPHS[name][1] if name in GRAPHS else ():
            for part in facts(name, target):
                sys.stdout.writelines(f"{target} {x}\n" for x in part)
        if name in FAMILIES:
            sys.stdout.writelines(f"{x}\n" for x in listed_facts(name))
    if not sys.argv[1:]:
        RECORD.write_text("".join(f"{x}\n" for x in lines()))
