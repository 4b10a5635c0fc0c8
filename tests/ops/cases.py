"""One row per op: how to build a graph with it, what to draw for its operands, and what else is true of it.

Every row gets every check of `tests/ops/test_cases.py`. A row is an op's public name, a builder that gets one Var per
draw and returns a node or several, and the draws. `case` adds what differs from the usual.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import cgraph as cg
from cgraph.ir.graph import Node, locates_errors
from cgraph.ops.resize import weighted_rows

TAPS = np.array([[0, 1], [2, 3], [1, 1]]), np.array([[0.25, 0.75], [-0.5, 1.5], [0.5, 0.25]])
"""Places and weights along an axis of four elements."""


@dataclass(frozen=True)
class Draw:
    """How to draw one operand.

    Fields
        low, high: bounds; for whole numbers, `high` is excluded
        kind: ``any``, ``apart`` (no two elements are near one another), ``definite`` (positive definite matrices) or
            ``key``
    """

    shape: tuple[int, ...]
    dtype: str = "float64"
    low: float = -2.0
    high: float = 2.0
    kind: str = "any"

    def array(self, rng: np.random.Generator) -> np.ndarray:
        if self.kind == "apart":
            steps = np.linspace(self.low, self.high, int(np.prod(self.shape)))
            return rng.permutation(steps).reshape(self.shape).astype(self.dtype)
        if self.kind == "definite":
            x = rng.uniform(-1, 1, self.shape)
            x = x + 1j * rng.uniform(-1, 1, self.shape) if self.dtype == "complex128" else x
            return (x @ np.swapaxes(x.conj(), -1, -2) + np.eye(self.shape[-1])).astype(self.dtype)
        if np.dtype(self.dtype).kind == "c":
            parts = [replace(self, dtype="float64").array(rng) for _ in range(2)]
            return (parts[0] + 1j * parts[1]).astype(self.dtype)
        if np.dtype(self.dtype).kind == "f":
            return rng.uniform(self.low, self.high, self.shape).astype(self.dtype)
        if self.dtype == "bool":
            return rng.random(self.shape) < 0.5
        return rng.integers(int(self.low), int(self.high), self.shape).astype(self.dtype)


@dataclass(frozen=True)
class Case:
    """One row.

    Fields
        op: the public name
        build: from one Var per draw to a node or several
        draws: the operands
        smooth: has a gradient for every float operand; with ``False`` none is asked for
        twice: the gradient is smooth as well
        scale: factor of the tolerance
    """

    op: str
    build: Callable[..., Node | Sequence[Node]]
    draws: tuple[Draw, ...]
    smooth: bool = True
    twice: bool = True
    scale: float = 1.0
    label: str = ""

    def __str__(self) -> str:
        return f"{self.op}{'-' if self.label else ''}{self.label}"

    def in_float32(self) -> "Case":
        """The same with single precision."""
        return replace(self, draws=tuple(replace(d, dtype=SINGLE.get(d.dtype, d.dtype)) for d in self.draws))


def case(op: str, build: Any, *draws: Draw | tuple[int, ...], **other: Any) -> Case:
    """A row; a bare shape draws floats in [-2, 2)."""
    return Case(op, build, tuple(d if isinstance(d, Draw) else Draw(d) for d in draws), **other)


def positive(*shape: int) -> Draw:
    return Draw(shape, low=0.3, high=3.0)


def inside(*shape: int) -> Draw:
    """Within (-1, 1)."""
    return Draw(shape, low=-0.9, high=0.9)


def apart(*shape: int) -> Draw:
    return Draw(shape, kind="apart")


def whole(*shape: int, low: int = -5, high: int = 6, dtype: str = "int64") -> Draw:
    return Draw(shape, dtype, low, high)


def truth(*shape: int) -> Draw:
    return Draw(shape, "bool")


def definite(*shape: int) -> Draw:
    return Draw(shape, kind="definite")


def plane(*shape: int, **other: Any) -> Draw:
    """Complex numbers."""
    return Draw(shape, "complex128", **other)


SINGLE = {"float64": "float32", "complex128": "complex64"}
KEY = whole(2, low=0, high=2**32, dtype="uint32")
SHAPE = (3, 5)


def named(names: str, *draws: Any, **other: Any) -> list[Case]:
    """Rows of functions that take the operands and nothing else."""
    return [case(name, getattr(cg, name), *draws, **other) for name in names.split()]


def running(h: Node, x: Node, w: Node) -> list[Node]:
    """A recurrent layer and what it counts; long enough for a loop."""

    def round_of(state: Any, row: Node) -> Any:
        h, count = state
        return (cg.tanh(h @ w + row * cg.astype(count, x.dtype)), count + 1), (h[0], count)

    (last, count), ys = cg.scan(round_of, (h, np.int64(0)), x)
    return [last, count, *ys]


POINTWISE = [
    *named("add subtract multiply hypot", SHAPE, (5,)),
    *named("arctan2 true_divide", SHAPE, positive(3, 1)),
    case("quantize", lambda x, s: cg.quantize(x, s, 120), SHAPE, positive(3, 1), smooth=False),
    case("quantize", lambda x: cg.quantize(x, 0.01, -5, "int8"), SHAPE, smooth=False, label="int8"),
    case(
        "fixed_product",
        lambda x: cg.fixed_product(x, 1505674021, -9),
        whole(*SHAPE, low=-(2**20), high=2**20, dtype="int32"),
        smooth=False,
        label="twice",
    ),
    case(
        "fixed_product",
        lambda x: cg.fixed_product(x, 1 << 30, np.array([[-3], [0], [2]], "int32"), once=True),
        whole(*SHAPE, low=-(2**20), high=2**20, dtype="int32"),
        smooth=False,
        label="once",
    ),
    case("dequantize", lambda q, s: cg.dequantize(q, s, 3), whole(*SHAPE, low=0, high=256, dtype="uint8"), positive(5)),
    *named("power", positive(*SHAPE), (5,)),
    *named("negative square exp exp2 expm1 sin cos arctan sinh cosh tanh arcsinh erf erfc", SHAPE),
    *named("sigmoid softplus swish mish softsign celu elu selu gelu", SHAPE),
    *named("relu leaky_relu relu6 abs", SHAPE, twice=False),
    *named("hard_sigmoid hard_swish thresholded_relu", SHAPE, twice=False),
    *named("log log2 log10 log1p sqrt reciprocal", positive(*SHAPE)),
    *named("gamma lgamma", positive(*SHAPE), scale=5),
    *named("digamma", positive(*SHAPE), scale=5, twice=False),
    *named("trigamma", positive(*SHAPE), smooth=False, scale=5),
    *named("gamma lgamma", Draw(SHAPE, low=-1.8, high=-1.2), scale=20, label="below"),
    *named("digamma", Draw(SHAPE, low=-1.8, high=-1.2), scale=20, twice=False, label="below"),
    *named("tan arcsin arccos arctanh", inside(*SHAPE)),
    *named("arccosh", Draw(SHAPE, low=1.5, high=3.0)),
    *named("maximum minimum", apart(*SHAPE), apart(3, 1), twice=False),
    *named("floor ceil trunc rint sign", inside(*SHAPE), twice=False),
    *named("remainder fmod", Draw(SHAPE, low=2.1, high=2.9), Draw((5,), low=0.8, high=1.0), twice=False),
    *named("copysign", positive(*SHAPE), (5,), twice=False),
    *named("floor_divide", SHAPE, positive(5), smooth=False),
    *named("less less_equal greater greater_equal equal not_equal", whole(*SHAPE), whole(5), smooth=False),
    *named("logical_and logical_or logical_xor", truth(*SHAPE), truth(5), smooth=False),
    *named("bitwise_and bitwise_or bitwise_xor", whole(*SHAPE), whole(5), smooth=False),
    *named("left_shift right_shift", whole(*SHAPE), whole(5, low=0, high=9), smooth=False),
    *named("logical_not invert", truth(*SHAPE), smooth=False),
    *named("isnan isinf isfinite", SHAPE, smooth=False),
    *named("cbrt", positive(*SHAPE)),
    *named("cbrt", Draw(SHAPE, low=-3.0, high=-0.3), label="below"),
    *named("bitwise_count", whole(*SHAPE), smooth=False),
    *named("bitwise_count", whole(*SHAPE, low=0, high=256, dtype="uint8"), smooth=False, label="bytes"),
    *named("gcd", whole(*SHAPE), whole(5), smooth=False),
    *named("positive", SHAPE),
    *named("where", truth(*SHAPE), SHAPE, (5,)),
    *named("prelu", apart(4, 5), (5,), twice=False),
    case("power", lambda x, y: cg.power(x, y), whole(*SHAPE), whole(5, low=0, high=6), smooth=False, label="whole"),
    case("round", lambda x: cg.round(x, 1), SHAPE, smooth=False),
    case("astype", lambda x: [cg.astype(x, "int32"), cg.astype(x, "bool")], SHAPE, smooth=False),
    case("astype", lambda x: cg.astype(cg.astype(x, "float32"), "float64") ** 2, SHAPE, smooth=False, label="float"),
    case("clip", lambda x: cg.clip(x, -1, 1.03), apart(4, 6), twice=False),
    case("gelu", lambda x: cg.gelu(x, approximate=True), SHAPE, label="tanh"),
    case("bitcast", lambda x: cg.bitcast(x, f"int{8 * x.dtype.itemsize}"), SHAPE, smooth=False),
]

MOVES = [
    case("reshape", lambda x: cg.reshape(x.T, (5, -1)), (2, 5, 3)),
    *named("ravel flatten transpose squeeze", (2, 1, 5)),
    case("permute_dims", lambda x: cg.permute_dims(x, (1, 2, 0)), (2, 3, 4)),
    case("swapaxes", lambda x: cg.swapaxes(x, 0, -1), (2, 3, 4)),
    case("moveaxis", lambda x: cg.moveaxis(x, (0, 1), (-1, 0)), (2, 3, 4)),
    case("expand_dims", lambda x: cg.expand_dims(x, (0, -1)), (2, 3)),
    case("broadcast_to", lambda x: cg.broadcast_to(x, (4, 2, 3)), (2, 1)),
    case("full", lambda: cg.full((2, 3), 7, "int16"), smooth=False),
    case("zeros", lambda: cg.zeros((2, 3)), smooth=False),
    case("ones", lambda: cg.ones((2, 0)), smooth=False),
    *named("zeros_like ones_like", SHAPE, smooth=False),
    case("arange", lambda x: x + cg.arange(5), SHAPE),
    case("concat", lambda x, y: cg.concat([x, y, x], 1), (2, 3), (2, 4)),
    case("stack", lambda x, y: cg.stack([x, y], -1), (2, 3), (2, 3)),
    case("roll", lambda x: cg.roll(x, (1, -2), (0, 1)), (3, 4)),
    case("sliding", lambda x: [cg.sliding(x, 3, 0), cg.sliding(x, 2)], (5, 4)),
    case("tile", lambda x: cg.tile(x, (2, 1, 3)), (2, 3)),
    case("repeat", lambda x: cg.repeat(x, 3, 1), (2, 3)),
    case("split", lambda x: cg.split(x, [1, 4], 1), (2, 6)),
    case("flip", lambda x: cg.flip(x, 1), (2, 6)),
    case("getitem", lambda x: x[::-2, None, ..., 1], (5, 2, 3)),
    case("set_slice", lambda x, y: cg.set_slice(x, (slice(None, None, -2), 1), y), (5, 3, 2), (2,)),
    case("atleast_1d", cg.atleast_1d, ()),
    case("pad", lambda x: cg.pad(x, ((1, 0), (2, 3)), constant_values=1.5), (2, 3)),
    case("pad", lambda x: cg.pad(x, ((1, 0), (2, 3)), "edge"), (2, 3), label="edge"),
    case("pad", lambda x: cg.pad(x, ((1, 0), (5, 3)), "reflect"), (2, 3), label="reflect"),
]

REDUCTIONS = [
    *[case(n, lambda x, n=n: getattr(cg, n)(x, (0, 2), keepdims=True), (3, 4, 2)) for n in "sum mean var".split()],
    case("prod", lambda x: cg.prod(x * np.array([[1.0, 0, 2, 1]]), 1), (3, 4)),
    case("prod", lambda x: cg.prod(x), (3, 3), label="all"),
    *[case(n, lambda x, n=n: getattr(cg, n)(x, 1), apart(3, 4, 2), twice=False) for n in "min max ptp".split()],
    *[
        case(n, lambda x, n=n: getattr(cg, n)(x, 1), whole(3, 4, high=1), smooth=False)
        for n in "any all count_nonzero".split()
    ],
    *[case(n, lambda x, n=n: getattr(cg, n)(x, 1), (3, 4, 2), smooth=False) for n in "argmin argmax".split()],
    case("std", lambda x: cg.std(x, (0, 1), ddof=1), (3, 4, 2)),
    case("sum", lambda x: cg.sum(x, 0), whole(300, 7, dtype="int8"), smooth=False, label="whole"),
    case("logsumexp", lambda x: cg.logsumexp(x, (0, 2), keepdims=True), (3, 4, 2)),
    *[case(n, lambda x, n=n: getattr(cg, n)(x, 1), (3, 4, 2)) for n in "softmax log_softmax logsumexp cumsum".split()],
    *[case(n, lambda x, n=n: getattr(cg, n)(x, -1), (3, 4, 2), label="last") for n in "softmax log_softmax".split()],
    case("cumprod", lambda x: cg.cumprod(x * np.array([1.0, 2, 0, 1, 1, 2, 1]), 1), (2, 7)),
]

INDEXING = [
    case("take", lambda x, i: cg.take(x, i, 1), (3, 5, 2), whole(2, 3, high=5)),
    case("take_along_axis", lambda x, i: cg.take_along_axis(x, i, 1), (3, 5), whole(3, 2, high=5, dtype="int32")),
    case("take_index", lambda x, i: x[i, :, i], (5, 2, 5), whole(2, 3, high=5)),
    case("take_index", lambda x, i: x[:, i], (5, 5, 2), whole(4, high=5), label="one"),
    case("gather_nd", lambda x, i: cg.gather_nd(x, i), (5, 6, 2), whole(3, 2, high=5)),
    case("scatter", lambda x, i, y: cg.scatter(x, i, y), (5, 2), whole(7, high=5), (7, 2), label="set"),
    case("scatter", lambda x, i, y: cg.scatter(x, i, y, "multiply"), (5, 2), whole(7, high=5), positive(7, 2)),
    case(
        "scatter",
        lambda x, i, y: cg.scatter(x, i, y, "max"),
        (5, 2),
        whole(7, high=5),
        (7, 2),
        label="max",
        twice=False,
    ),
    case(
        "scatter",
        lambda x, i, y: cg.scatter(x, i, y, "min", 1),
        (2, 5),
        whole(7, high=5),
        (2, 7),
        label="min",
        twice=False,
    ),
    case("scatter_add", lambda x, i, y: cg.scatter_add(x, i, y, 1), (2, 5), whole(3, 2, high=5), (2, 3, 2)),
    case("put_along_axis", lambda x, i, y: cg.put_along_axis(x, i, y, 1), (3, 5), whole(3, 7, high=5), (3, 7)),
    case(
        "put_along_axis",
        lambda x, i, y: cg.put_along_axis(x, i, y, 0, "add"),
        (5, 3),
        whole(7, 3, high=5),
        (7, 3),
        label="add",
    ),
    case("one_hot", lambda i: cg.one_hot(i, 5, 1, "float64", 2.0, -1.0), whole(2, 3, high=5), smooth=False),
    case("nonzero", lambda x: cg.nonzero(x, 9, -1), truth(3, 5), smooth=False),
    case("unique", lambda x: cg.unique(x, 8), whole(3, 5), smooth=False),
    *[case(n, lambda x, n=n: getattr(cg, n)(x, 1), apart(3, 7), twice=False) for n in ("sort",)],
    case("sort", lambda x: cg.sort(x, 0, descending=True), apart(3, 7), twice=False, label="falling"),
    case("argsort", lambda x: [cg.argsort(x, 0), cg.argsort(x, 1, descending=True)], whole(5, 7), smooth=False),
    case("top_k", lambda x: cg.top_k(x, 3, 1), apart(4, 7), twice=False),
    case("top_k", lambda x: cg.top_k(x, 5, 0, False), apart(40, 3), twice=False, label="few"),
    case("stop_gradient", lambda x: cg.stop_gradient(x) * x, SHAPE, smooth=False),
    case("custom_gradient", lambda x, w: cg.custom_gradient(x * w, [x, w], lambda g: [g * w, g * x]), SHAPE, SHAPE),
    case("searchsorted", lambda x, y: cg.searchsorted(cg.sort(x), y, "right"), (9,), (3, 4), smooth=False),
    case("digitize", lambda x: cg.digitize(x, [-1.0, 0.0, 1.5]), SHAPE, smooth=False),
    *[case(n, lambda x, n=n: getattr(cg, n)(x, -1), (2, 4, 5)) for n in "triu tril".split()],
    case("diagonal", lambda x: cg.diagonal(x, 1, 0, 2), (3, 2, 4)),
    case("diag", lambda x, y: [cg.diag(x, -1), cg.diag(y, 1)], (3,), (3, 4)),
    case("trace", lambda x: cg.trace(x, -1), (4, 3, 2)),
    case("eye", lambda x: cg.eye(3, 4, 1, "float64") * x, (3, 4)),
]

PRODUCTS = [
    case("matmul", lambda x, y: x @ y, (2, 3, 4), (4, 5)),
    case("matmul", lambda x, y: x.T @ y[:, ::-1].T, (4, 3), (5, 4), label="strided"),
    case("matmul", lambda x, y: x @ y, (4,), (2, 4, 3), label="vector"),
    case(
        "matmul",
        lambda x, y: x @ y,
        whole(3, 4, dtype="int16"),
        whole(4, 2, dtype="int16"),
        smooth=False,
        label="whole",
    ),
    case("matmul", lambda x, y: x @ y, (40, 70), (70, 90), label="large"),
    *named("dot", (2, 3, 4), (5, 4, 2)),
    *named("inner", (2, 4), (3, 4)),
    *named("vdot outer", (2, 3), (3, 2)),
    *named("kron", (2, 3), (3, 1, 2)),
    case("tensordot", lambda x, y: cg.tensordot(x, y, ((0, 2), (1, 0))), (3, 2, 4), (4, 3, 5)),
    case("einsum", lambda x, y, z: cg.einsum("aij,jk,ka->ia", x, y, z), (2, 3, 4), (4, 5), (5, 2)),
    case("einsum", lambda x: cg.einsum("ii...->...", x), (3, 3, 2), label="trace"),
    case("norm", lambda x: [cg.norm(x), cg.norm(x, 1), cg.norm(x, "nuc"), cg.norm(x, 3, 0)], positive(3, 4), scale=20),
]

LINALG = [
    case("inv", cg.inv, definite(2, 3, 3), scale=20),
    case("inv", cg.inv, definite(9, 9), scale=20, twice=False, label="large"),
    case("solve", cg.solve, definite(9, 9), (9, 2), scale=20, twice=False, label="large"),
    case("cholesky", cg.cholesky, definite(9, 9), scale=20, twice=False, label="large"),
    case("det", lambda x: cg.det(x / 4), definite(9, 9), scale=20, twice=False, label="large"),
    case("solve", cg.solve, definite(2, 3, 3), (2, 3, 2), scale=20),
    case("solve", cg.solve, definite(3, 3), (3,), scale=20, label="vector"),
    case("cholesky", cg.cholesky, definite(2, 3, 3), scale=20),
    case("qr", cg.qr, (2, 4, 3), scale=50),
    case("qr", lambda x: cg.qr(x, complete=True), (3, 4, 2), smooth=False, scale=50, label="complete"),
    case("svd", lambda x: cg.svd(x, full_matrices=False), (2, 4, 3), scale=200),
    case("svd", lambda x: cg.svd(x, full_matrices=False), (3, 4), scale=200, label="wide"),
    case("svd", cg.svd, (3, 3), scale=200, label="square"),
    case("svdvals", cg.svdvals, (3, 4), scale=50),
    case("eigh", cg.eigh, definite(2, 3, 3), scale=200),
    case("det", cg.det, definite(2, 3, 3), scale=20),
    *named("slogdet logdet", definite(2, 3, 3), scale=20),
    case("fft", lambda x: cg.fft(x, axis=0), (5, 3, 2)),
    case("ifft", lambda x: cg.ifft(x, 7), (3, 5, 2)),
    case("rfft", lambda x: [cg.rfft(x), cg.rfft(x, axis=0)], (6, 5)),
    case("irfft", lambda x: [cg.irfft(x), cg.irfft(x, 7)], (3, 4, 2)),
]


def rebuilt(x: Node) -> list[Node]:
    """What does not depend on the phases of singular vectors."""
    u, s, vh = cg.svd(x, full_matrices=False)
    return [s, u @ (cg.expand_dims(cg.exp(s), -1) * vh)]


def hermitian_root(x: Node) -> list[Node]:
    """What does not depend on the phases of eigenvectors."""
    w, v = cg.eigh(x)
    return [w, (v * cg.expand_dims(cg.sqrt(w), -2)) @ cg.conj(cg.swapaxes(v, -1, -2))]


def projected(x: Node) -> Node:
    """Magnitudes of eigenvectors, which have no phase."""
    return cg.abs(cg.eig(x)[1])


ROW, GRID = plane(5), plane(*SHAPE)
ONE_HALF = plane(*SHAPE, low=0.3, high=1.2)  # away from branch cuts

COMPLEX = [
    replace(row, label="complex")
    for row in [
        *named("add subtract multiply", GRID, ROW),
        *named("true_divide power", GRID, plane(5, low=0.4, high=1.5)),
        *named("negative square exp exp2 expm1 sin cos sinh cosh positive conj real imag as_parts", GRID),
        *named("abs sign reciprocal log log2 log10 log1p sqrt tan tanh arctan arcsinh", ONE_HALF),
        *named("arcsin arccos arctanh", ONE_HALF, scale=5),
        *named("arccosh", ONE_HALF, scale=5),
        *named("maximum minimum", GRID, ROW, twice=False),
        *named("less less_equal greater greater_equal equal not_equal", GRID, ROW, smooth=False),
        *named("isnan isinf isfinite rint", GRID, smooth=False),
        *named("where", truth(*SHAPE), GRID, ROW),
        case("astype", lambda x, y: cg.astype(x * 2, "complex128") * y, SHAPE, GRID),
        case("astype", lambda x: [cg.astype(x, "complex64"), cg.astype(x, "bool")], GRID, smooth=False),
        case("complex", lambda x, y: cg.complex(x, y) ** 2, SHAPE, (5,)),
        case("concat", lambda x, y: cg.concat([x.T, y[::-1].T * 2], 1)[::2], plane(3, 4), plane(2, 4)),
        case("pad", lambda x: cg.pad(x, ((1, 0), (2, 3)), constant_values=1.5), plane(2, 3)),
        case("set_slice", lambda x, y: cg.set_slice(x, (slice(None, None, -2), 1), y), plane(5, 3, 2), plane(2)),
        case("sum", lambda x: [cg.sum(x, (0, 2)), cg.mean(x * x, 1)], plane(3, 4, 2)),
        case("var", lambda x: [cg.var(x, 1), cg.std(x, (0, 1), ddof=1)], plane(3, 4, 2)),
        case("prod", lambda x: cg.prod(x, 1), plane(3, 4)),
        *[case(n, lambda x, n=n: getattr(cg, n)(x, (0, 2)), plane(3, 4, 2), twice=False) for n in ("min", "max")],
        *[case(n, lambda x, n=n: getattr(cg, n)(x, 1), plane(3, 4, 2), smooth=False) for n in ("argmin", "argmax")],
        *[case(n, lambda x, n=n: getattr(cg, n)(x, 1), plane(3, 4, 2)) for n in ("cumsum", "cumprod")],
        *[case(n, lambda x, n=n: getattr(cg, n)(x, 1), plane(3, 4, 2), smooth=False) for n in ("any", "all")],
        case("sort", lambda x: [cg.sort(x, 0), cg.sort(x, 1, descending=True)], plane(3, 7), twice=False),
        case("argsort", lambda x: cg.argsort(cg.rint(x), 0), plane(9, 4), smooth=False),
        case("take", lambda x, i: cg.take(x, i, 1), plane(3, 5, 2), whole(2, 3, high=5)),
        case("take_along_axis", lambda x, i: cg.take_along_axis(x, i, 1), plane(3, 5), whole(3, 2, high=5)),
        case("scatter", lambda x, i, y: cg.scatter(x, i, y), plane(5, 2), whole(7, high=5), plane(7, 2)),
        case("scatter", lambda x, i, y: cg.scatter(x, i, y, "multiply"), plane(5, 2), whole(7, high=5), plane(7, 2)),
        case("triu", lambda x: cg.triu(x), plane(2, 4, 5)),
        case("nonzero", lambda x: cg.nonzero(cg.rint(x), 9), GRID, smooth=False),
        case("matmul", lambda x, y: x @ y, plane(2, 3, 4), plane(4, 5)),
        case("matmul", lambda x, y: [x @ y, y.T @ x.T], (3, 4), plane(4, 5)),
        *named("vdot outer", plane(2, 3), plane(3, 2)),
        case("einsum", lambda x, y, z: cg.einsum("aij,jk,ka->ia", x, y, z), plane(2, 3, 4), (4, 5), plane(5, 2)),
        case("norm", lambda x: [cg.norm(x), cg.norm(x, 1), cg.norm(x, "nuc"), cg.norm(x, 3, 0)], plane(3, 4), scale=20),
        case("inv", cg.inv, plane(2, 3, 3), scale=20),
        case("solve", cg.solve, plane(2, 3, 3), plane(2, 3, 2), scale=20),
        case("det", cg.det, plane(2, 3, 3), scale=20),
        case("slogdet", cg.slogdet, plane(2, 3, 3), scale=20),
        case("cholesky", cg.cholesky, plane(2, 3, 3, kind="definite"), scale=20),
        case("qr", cg.qr, plane(2, 4, 3), scale=50),
        case("svd", rebuilt, plane(2, 4, 3), scale=200),
        case("eigh", lambda x: cg.eigh(x, upper=True)[0], plane(2, 3, 3, kind="definite"), scale=200),
        case("eigh", hermitian_root, plane(2, 3, 3, kind="definite"), scale=200),
        case("eig", lambda x: cg.eig(x)[0], (3, 3), twice=False, scale=200),
        case("eig", projected, plane(3, 3), twice=False, scale=200),
        case("scan", lambda h, x: cg.scan(lambda h, y: (cg.tanh(h + y), h[0]), h, x), plane(2, 3), plane(7, 2, 3)),
        case("delay", lambda x: cg.delay(np.conj, x) + 1, GRID, smooth=False),
    ]
] + [
    replace(case(name, build, draw), op=op, label=name)
    for op, name, build, draw in [
        ("complex", "fft", lambda x: [np.fft.fft(x, 7, 0), np.fft.ifft(x, norm="ortho")], plane(5, 3)),
        ("complex", "fftn", lambda x: np.fft.fftn(x, (3, 6), (0, 1), "forward"), plane(5, 4)),
        ("complex", "rfft", lambda x: [np.fft.rfft(x), np.fft.rfft(x, 7, 0, "ortho")], Draw((6, 5))),
        ("complex", "irfft", lambda x: [np.fft.irfft(x), np.fft.irfft(x, 7, 0, "forward")], plane(4, 5)),
    ]
]

IMAGES = [
    case("conv1d", lambda x, f: cg.conv1d(x, f, 2, (1, 0)), (2, 3, 9), (4, 3, 3)),
    case("conv2d", lambda x, f: cg.conv2d(x, f, (2, 1), (1, 0, 2, 1), (1, 2), 2), (2, 4, 7, 8), (6, 2, 3, 2)),
    case("conv2d", lambda x, f: cg.conv2d(x, f), (1, 2, 3, 4), (3, 2, 1, 1), label="point"),
    case("conv2d", lambda x, f: cg.conv2d(x, f, pad=1, groups=4), (2, 4, 5, 6), (4, 1, 3, 3), label="depthwise"),
    case("conv2d", lambda x, f: cg.conv2d(x, f, pad=1), (1, 20, 9, 17), (24, 20, 3, 3), twice=False, label="large"),
    case("conv3d", lambda x, f: cg.conv3d(x, f, 2, 1), (1, 2, 4, 5, 6), (3, 2, 2, 2, 2)),
    case("conv_transpose1d", lambda x, f: cg.conv_transpose1d(x, f, 2, 1), (2, 3, 5), (3, 2, 3)),
    case("conv_transpose2d", lambda x, f: cg.conv_transpose2d(x, f, 2, 1, 2, 2, 1), (2, 4, 3, 4), (4, 3, 3, 2)),
    case("conv_transpose3d", lambda x, f: cg.conv_transpose3d(x, f, 2), (1, 2, 2, 3, 2), (2, 3, 2, 2, 2)),
    case("max_pool1d", lambda x: cg.max_pool1d(x, 3, 2, ceil=True), apart(2, 3, 8), twice=False),
    case("max_pool2d", lambda x: cg.max_pool2d(x, 3, 2, 1), apart(2, 3, 7, 6), twice=False),
    case(
        "max_pool2d", lambda x: cg.max_pool2d(x, (2, 3), 1, dilation=2), apart(1, 2, 7, 6), twice=False, label="dilated"
    ),
    case(
        "max_pool2d",
        lambda x, g: cg.gradient(cg.sum(cg.max_pool2d(x, 2, 1) * g), x),
        apart(1, 2, 4, 5),
        (1, 2, 3, 4),
        twice=False,
        label="gradient",
    ),
    case("max_pool3d", lambda x: cg.max_pool3d(x, 2), apart(1, 2, 4, 5, 4), twice=False),
    case("avg_pool1d", lambda x: cg.avg_pool1d(x, 3, 2, 1), (2, 3, 8)),
    case("avg_pool2d", lambda x: cg.avg_pool2d(x, 3, 2, 1, ceil=True), (2, 3, 7, 6)),
    case("avg_pool2d", lambda x: cg.avg_pool2d(x, 3, 2, 1, True, True), (2, 3, 7, 6), label="padded"),
    case("avg_pool3d", lambda x: cg.avg_pool3d(x, 2), (1, 2, 4, 5, 4)),
    *named("global_max_pool", apart(2, 3, 4, 2), twice=False),
    *named("global_avg_pool", (2, 3, 4, 2)),
    *named("batch_norm", (2, 3, 4), (3,), (3,), (3,), positive(3)),
    *named("batch_norm_training", (4, 3, 2), (3,), (3,), scale=5),
    *named("layer_norm", (2, 3, 4), (3, 4), (3, 4), scale=5),
    case("group_norm", lambda x, s, b: cg.group_norm(x, s, b, 2), (2, 4, 3), (4,), (4,), scale=5),
    case("group_norm", lambda x, s, b: cg.group_norm(x, s, b, 2), (3, 4), (4,), (4,), scale=5, label="rows"),
    *named("instance_norm", (2, 3, 5), (3,), (3,), scale=5),
    case("lrn", lambda x: cg.lrn(x, 3, 0.5, 0.75, 2.0), (2, 5, 3)),
    case("lrn", lambda x: cg.lrn(x, 4, 0.5, 0.6, 1.0), (1, 5, 3, 2), label="even"),
    case("resize", lambda x: cg.resize(x, (7, 3)), (2, 3, 4, 5)),
    case("resize", lambda x: locates_errors(weighted_rows)(x, 2, *TAPS), (2, 3, 4, 2), label="weighted rows"),
    case("resize", lambda x: cg.resize(x, (8, 15), "nearest", "asymmetric", "floor"), (2, 3, 4, 5), label="repeated"),
    case("resize", lambda x: cg.resize(x, (7, 3), "linear", "align_corners"), (2, 3, 4, 5), label="linear"),
]

BOXES = Draw((12, 2), low=0, high=9)
SIZES = Draw((12, 2), low=1, high=5)


def corners(low: Node, size: Node) -> Node:
    return cg.concat([low, low + size], 1)


def pictures(low: Node, size: Node) -> Node:
    """Four boxes in each of three pictures."""
    return cg.reshape(corners(low, size), (3, 4, 4))


def regions_case(grid: str) -> Case:
    """Boxes in two images of two sizes, some of them beyond the border, one without width."""
    low = np.random.default_rng(5).uniform(-3, 12, (7, 2))
    size = np.random.default_rng(6).uniform(0, 12, (7, 2)) * np.array([1] * 6 + [0])[:, None]
    boxes = np.concatenate([low, low + size], 1)

    def build(x: Node, y: Node, batch: Node, level: Node) -> Node:
        samples = 1 if grid == "corners" else 2
        given = boxes.astype(x.dtype)
        return cg.roi_align_levels([x, y], given, batch, level, (3, 2), (0.5, 0.25), samples, grid)

    draws = whole(7, low=0, high=2), whole(7, low=0, high=2)
    return case("roi_align_levels", build, (2, 3, 6, 7), (2, 3, 4, 3), *draws, label=grid)


TREES = [
    np.array([0, 4, 7]),  # roots; of each node: column, threshold, the node below, the one above
    np.array([2, 0, -1, -1, 1, -1, -1, -1]),
    np.array([0.25, -1, 0, 0, 1, 0, 0, 0]),
    np.array([1, 2, 0, 0, 5, 0, 0, 0]),
    np.array([3, 3, 0, 0, 6, 0, 0, 0]),
]
MISSES = [True] * 4 + [False] * 4

REST = [
    case("box_iou", lambda a, s: cg.box_iou(corners(a, s), corners(a, s)[:5]), BOXES, SIZES, twice=False),
    case("box_encode", lambda a, s: cg.box_encode(corners(a, s), corners(a, s)[::-1], (10, 10, 5, 5)), BOXES, SIZES),
    case("box_decode", lambda d, a, s: cg.box_decode(d, corners(a, s), (10, 10, 5, 5)), (12, 4), BOXES, SIZES),
    case("box_decode", lambda d, a, s: cg.box_decode(d, corners(a, s), most=0.7), (12, 4), BOXES, SIZES, label="most"),
    case(
        "non_maximum_suppression",
        lambda a, s, p: cg.non_maximum_suppression(corners(a, s), p, 8, 0.2, -1.5),
        BOXES,
        SIZES,
        apart(12),
        smooth=False,
    ),
    case(
        "non_maximum_suppression",
        lambda a, s, p, g: cg.non_maximum_suppression(pictures(a, s), p, 4, 0.2, -1.5, groups=g),
        BOXES,
        SIZES,
        apart(3, 4),
        whole(4, low=0, high=2),
        smooth=False,
        label="groups",
    ),
    case(
        "roi_align",
        lambda x, a, s, i: cg.roi_align(x, corners(a, s), i, (2, 3), scale=0.5),
        (2, 3, 6, 7),
        BOXES,
        SIZES,
        whole(12, low=0, high=2),
        twice=False,
    ),
    *[regions_case(grid) for grid in ("cells", "aligned", "corners")],
    case(
        "scaled_dot_product_attention",
        lambda q, k, v: cg.scaled_dot_product_attention(q, k, v, causal=True),
        (2, 4, 3),
        (2, 4, 3),
        (2, 4, 5),
    ),
    case(
        "scaled_dot_product_attention",
        lambda q, k, v, m: cg.scaled_dot_product_attention(q, k, v, m),
        (4, 3),
        (6, 3),
        (6, 5),
        (4, 6),
        label="mask",
    ),
    case(
        "scaled_dot_product_attention",
        lambda q, k, v, m: cg.scaled_dot_product_attention(q, k, v, m | (np.arange(9) == 4)),
        (2, 4, 3, 5),
        (2, 2, 9, 5),
        (2, 2, 9, 5),
        truth(2, 1, 1, 9),
        label="shared heads, padding",
    ),
    case(
        "scaled_dot_product_attention",
        lambda q, k, v, t: cg.scaled_dot_product_attention(q, k, v, causal=True, window=4, start=t),
        (2, 2, 3, 5),
        (2, 1, 70, 5),
        (2, 1, 70, 2),
        whole(2, low=0, high=68),
        label="window",
    ),
    case(
        "scaled_dot_product_attention",
        lambda q, k, v: cg.scaled_dot_product_attention(q, k, v, softcap=0.8),
        (2, 3, 3),
        (2, 70, 3),
        (2, 70, 2),
        label="cap",
    ),
    case(
        "scaled_dot_product_attention",
        lambda q, k, v, m: cg.scaled_dot_product_attention(q, k, v, m & (np.arange(5)[:, None] != 3), safe=True),
        (2, 5, 3),
        (2, 9, 3),
        (2, 9, 6),
        truth(2, 5, 9),
        label="safe",
    ),
    case("rms_norm", lambda x, s: cg.rms_norm(x, s), (2, 3, 5), (5,)),
    *[
        case(
            "block_matmul",
            lambda x, y, s, z: cg.block_matmul(x, y, s, z),
            Draw((*rows, k), "float32"),
            Draw((7, -(-k // block), block // 2), "uint8", 0, 256),
            Draw((7, -(-k // block)), "float32", 0.1, 0.5),
            Draw((7, -(-k // block)), "uint8", 0, 16),
            smooth=False,
            label=f"{rows} {k} {block}",
        )
        for rows, k, block in (((), 64, 32), ((2, 3), 70, 16), ((5,), 129, 128), ((2, 9), 50, 32))
    ],
    case("set_rows", lambda x, y, t: cg.set_rows(x, t, y, 1), (3, 6, 2), (3, 4, 2), whole(3, low=-5, high=7)),
    case("set_rows", lambda x, y: cg.set_rows(x, 2, y), (6, 2), (3, 2), label="one position"),
    case("take_rows", lambda x, t: cg.take_rows(x, t, 4, 2), (3, 2, 6, 2), whole(3, low=-5, high=7)),
    case("take_rows", lambda x: cg.take_rows(x, -1, 3), (5,), label="one position"),
    *named("rnn_cell", (2, 3), (2, 4), (3, 4), (4, 4), (4,)),
    *named("lstm_cell", (2, 3), (2, 4), (2, 4), (3, 16), (4, 16), (16,)),
    *named("gru_cell", (2, 3), (2, 4), (3, 12), (4, 12), (12,), (4,)),
    case("random_key", lambda: cg.random_bits(cg.random_key(7), (3,)), smooth=False),
    case("split_key", lambda k: cg.split_key(k, 3), KEY, smooth=False),
    case("random_bits", lambda k: [cg.random_bits(k, (3, 70)), cg.random_bits(k, (7,), "uint64")], KEY, smooth=False),
    case(
        "random_uniform",
        lambda k: [cg.random_uniform(k, (130,), -1, 3), cg.random_uniform(k, (5, 7), dtype="float64")],
        KEY,
        smooth=False,
    ),
    case(
        "random_normal",
        lambda k: [cg.random_normal(k, (130,), 1, 2), cg.random_normal(k, (5, 7), dtype="float64")],
        KEY,
        smooth=False,
    ),
    case("random_bernoulli", lambda k: cg.random_bernoulli(k, (9, 30), 0.3), KEY, smooth=False),
    case("dropout", lambda x, k: cg.dropout(x, k, 0.3), (9, 8), KEY),
    case("scan", lambda h, x, w: cg.scan(lambda h, row: (cg.tanh(h @ w + row), h[0]), h, x), (2, 3), (3, 2, 3), (3, 3)),
    case("scan", running, (2, 3), (7, 2, 3), (3, 3), label="loop"),
    case("cond", lambda p, x: cg.cond(p, cg.sin, lambda x: x * x * x, x), truth(), SHAPE),
    case("while_loop", lambda x: cg.while_loop(lambda s: cg.sum(s * s) > 1, lambda s: cg.sin(s) / 2, x, 9), SHAPE),
    case("fori", lambda x: cg.fori(0, 6, lambda i, s: cg.sin(s) + x * cg.astype(i, x.dtype), x), SHAPE),
    case("delay", lambda x: cg.delay(np.sin, x) + 1, SHAPE, smooth=False),
    case("delay_array", lambda x: cg.delay_array((5,), x.dtype, lambda v: v.sum(0), x), SHAPE, smooth=False),
    case("lazy_print", lambda x: cg.lazy_print(x) * 2, (2, 2)),
    case("tree_leaves", lambda x: cg.tree_leaves(x, *TREES) * 2, (70, 3), smooth=False),
    case(
        "tree_leaves",
        lambda x: cg.tree_leaves(cg.round(x), *TREES, [0, 1] * 4, MISSES),
        (70, 3),
        smooth=False,
        label="kinds",
    ),
    case("kernel", lambda x, limit: beyond(x, limit) * 2, apart(4, 7), positive(7), label="branches"),
    case(
        "kernel",
        lambda x: hundredfold(x) + 1,
        whole(3, 50, low=-90, high=90, dtype="int8"),
        smooth=False,
        label="whole",
    ),
    case("kernel", lambda x, y: damped(x, y) + x, SHAPE, positive(5), label="ops"),
    case("kernel", lambda x: doubled(x), SHAPE, label="own_gradient"),
    case("kernel", lambda x, w: rows_by_weight(x, w) + 1, (6, 40), positive(), label="arrays"),
    case("kernel", lambda x, m: chosen(x, m), (2, 3, 70), truth(2, 3, 70), smooth=False, label="dtypes"),
]


@cg.kernel(grad=lambda g, y, x, limit: (g * cg.not_equal(y, 0), -g * cg.sign(y)))
def beyond(x, limit):
    """What is beyond a limit on either side; Numba compiles it."""
    if abs(x) <= limit:
        return x * 0
    return x - limit if x > 0 else x + limit


@cg.kernel(dtype="int16")
def hundredfold(x):
    return x * 100 if x > -50 else 0


@cg.kernel
def damped(x, y):
    """Without a branch, so it becomes ops, with their gradients."""
    return math.exp(-y) * np.sin(2 * x)


@cg.kernel(grad=lambda g, y, x: 2 * g)
def doubled(x):
    return x + x


@cg.kernel(
    out=lambda x, w: ((x.shape[0],), x.dtype),
    tasks=lambda x, w: x.shape[0],
    grad=lambda g, y, x, w: (cg.expand_dims(g, 1) * w * 2 * x, cg.sum(g * cg.sum(x * x, 1))),
)
def rows_by_weight(task, out, x, w):
    total = x[task, 0] * 0
    for j in range(x.shape[1]):
        total += x[task, j] * x[task, j]
    out[task] = w * total


@cg.kernel(out=lambda x, m: (x.shape[::-1], "int32"), tasks=lambda x, m: x.shape[2])
def chosen(task, out, x, m):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[task, j, i] = round(10 * x[i, j, task]) if m[i, j, task] else -1


LEAF_WEIGHTS = np.random.default_rng(8).normal(size=(8, 3)).astype("float32")


def forest(targets):
    """The sums over trees of the weights of leaves."""
    weights = LEAF_WEIGHTS[:, :targets]
    return lambda x: cg.sum(cg.take(weights, cg.tree_leaves(x, *TREES, None, MISSES), 0), 1)


FORESTS = [
    case("tree_leaves", forest(1), (70, 3), smooth=False, label="sums"),
    case("tree_leaves", forest(3), (70, 3), smooth=False, label="sums of targets"),
]
CASES = [*POINTWISE, *MOVES, *REDUCTIONS, *INDEXING, *PRODUCTS, *LINALG, *COMPLEX, *IMAGES, *REST, *FORESTS]
