"""What holds 0 stays 0: frames and lanes without a channel, by proof, whatever is spread over pixels."""

from itertools import product

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.ir.graph import apply
from cgraph.lowering.zero_proof import POINTS, ROUNDED, exact_step, keeps_frame, keeps_rest
from cgraph.ops.elementary import Elementary
from cgraph.passes import PASSES
from cgraph.passes.fuse_pointwise import fuse_pointwise
from tests.support.kernels import TARGETS
from tests.support.tolerance import assert_close

FUNCTIONS = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh"}
FUNCTIONS |= {"atanh": "arctanh", "pow": "power"}
TWO = ("pow", "hypot")


SOME = np.arange(17).reshape(17, 1, 1) % 2 == 0
ONES_OF_SOME = SOME.astype("float32")


class Ndtr(Elementary):
    """What gelu is made of."""

    primitive = "ndtr"


def images(*shape, name="x"):
    return cg.Var(shape, name=name)


def normal(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_known_of_a_rounded_function_is_what_kernels_compute(target, dtype):
    points = np.array(POINTS, dtype)
    x = cg.Var(points.shape, dtype)
    pairs = np.array(list(product(points, points)), dtype).T
    y = cg.Var(pairs.shape, dtype)
    nodes = [
        apply(Ndtr(), x) if f == "ndtr" else getattr(cg, FUNCTIONS.get(f, f))(*((y[0], y[1]) if f in TWO else (x,)))
        for f in ROUNDED
    ]
    found = cg.compile(nodes, [x, y], engine=CpuEngine(target=target))(points, pairs)
    for name, values in zip(ROUNDED, found):
        for operands, value in zip(pairs.T if name in TWO else points[:, None], values):
            known = exact_step(name, np.dtype(dtype), [np.asarray(v) for v in operands])
            assert known is None or known == value, (name, operands)


@pytest.mark.parametrize(
    ("make", "frame", "rest"),
    [
        (lambda x, s, n: cg.relu(x) * cg.sigmoid(x), True, True),
        (lambda x, s, n: cg.gelu(x) + cg.gelu(x, approximate=True), True, True),
        (lambda x, s, n: cg.tanh(x) + x * 2.0, True, True),
        (lambda x, s, n: cg.where(x > 1, s, x), True, True),  # the choice is known
        (lambda x, s, n: cg.where(x > -1, s, x), False, True),
        (lambda x, s, n: x * normal(17, 1, 1), True, True),
        (lambda x, s, n: x + normal(17, 1, 1), False, True),  # channels that there are not hold no sum
        (lambda x, s, n: x * s, False, True),  # s may be infinite
        (lambda x, s, n: x * n, False, False),
        (lambda x, s, n: x + 1.0, False, False),
        (lambda x, s, n: cg.cos(x), False, False),
        (lambda x, s, n: cg.exp(x) - 1.0, True, True),
        (lambda x, s, n: x / (cg.abs(x) * 0.0), False, False),  # 0 / 0
        (lambda x, s, n: cg.where(s > 0, x, x * 2.0), False, True),  # the choice is not known
        (lambda x, s, n: cg.where(SOME, x, x * 2.0), True, True),  # it is, and differs by channel
        (lambda x, s, n: cg.where(SOME, x, x + ONES_OF_SOME), True, True),  # the ones are not taken
        (lambda x, s, n: cg.where(SOME, x + ONES_OF_SOME, x), False, True),
        (lambda x, s, n: cg.where(SOME, x, s), False, True),
        (lambda x, s, n: cg.where(SOME, s, x), False, True),
        (lambda x, s, n: cg.floor(x).astype("int32").astype("float32"), False, False),  # out of range it may differ
    ],
)
def test_the_proof(make, frame, rest):
    x, s, n = images(2, 17, 6, 6), images(17, 1, 1, name="s"), images(1, name="n")
    (node,) = fused([make(x, s, n)])
    assert (keeps_frame(node), keeps_rest(node)) == (frame, rest)


def fused(outputs):
    for rewrite in PASSES:
        outputs = rewrite(tuple(outputs))
    return outputs


def compiled_and_meant(out, values):
    return cg.compile(out, list(values))(*values.values()), evaluate([out], values)[0]


def test_a_number_that_is_infinite_reaches_no_lane_without_a_channel():
    x, s = images(2, 17, 8, 8), images(1, name="s")
    y = cg.conv2d(x, normal(17, 17, 3, 3), 1, 1)
    out = cg.conv2d(cg.tanh(y * s), normal(17, 17, 3, 3), 1, 1)
    assert_close(*compiled_and_meant(out, {x: normal(*x.shape), s: np.array([np.inf], "float32")}))


def test_channels_that_are_infinite_reach_no_frame():
    x, s = images(2, 16, 8, 8), images(16, 1, 1, name="s")
    y = cg.conv2d(x, normal(16, 16, 3, 3), 1, 1)
    out = cg.conv2d(cg.tanh(y * s), normal(16, 16, 3, 3), 1, 1)
    assert_close(*compiled_and_meant(out, {x: normal(*x.shape), s: np.full(s.shape, np.inf, "float32")}))


def test_lanes_without_a_channel_hold_0_behind_a_pool_too():
    x = images(2, 17, 8, 8)
    y = cg.conv2d(x, normal(17, 17, 3, 3), 1, 1)
    small = cg.max_pool2d(cg.exp(-cg.abs(y)), 1)  # below 1, but 1 where y is 0
    out = cg.conv2d(cg.where(small < 1.0, small, np.nan), normal(17, 17, 3, 3), 1, 1)
    assert_close(*compiled_and_meant(out, {x: normal(*x.shape)}))


@pytest.mark.parametrize("channels", [16, 17])
@pytest.mark.parametrize("gates", ["one", "each"])
def test_one_channel_is_spread_over_all_and_each_over_its_pixels(channels, gates):
    x = images(2, channels, 8, 8)
    y = cg.relu(cg.conv2d(x, normal(channels, channels, 3, 3), 1, 1))
    gate = cg.conv2d(cg.avg_pool2d(y, 8), normal(1 if gates == "one" else channels, channels, 1, 1))
    out = cg.conv2d(y * gate, normal(channels, channels, 3, 3), 1, 1)
    assert_close(*compiled_and_meant(out, {x: normal(*x.shape)}))


NUMBERS = np.array([0.0, -0.0, 0.5, 1, -1, np.inf, -np.inf, np.nan], "float32")
ONE = [cg.negative, cg.abs, cg.floor, cg.ceil, cg.rint, cg.trunc, cg.sqrt, cg.sign, cg.isnan, cg.relu, cg.square]
BOTH = [
    cg.add, cg.subtract, cg.multiply, cg.true_divide, cg.maximum, cg.minimum, cg.copysign, cg.less, cg.less_equal,
    cg.greater, cg.greater_equal, cg.equal, cg.not_equal, cg.fmod,
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_proof_has_the_zeros_of_numpy(dtype):
    """For any number of each channel, on either side: what is exact is known, and nothing else is 0."""
    x, zero = cg.Var((1, 3, 2, 2), dtype, "x"), np.zeros((1, 3, 2, 2), dtype)
    nodes = [f(x) for f in ONE]
    for number in NUMBERS:
        channels = cg.Const(np.array([0, number, 0], dtype).reshape(3, 1, 1))
        nodes += [node for f in BOTH for node in (f(x, channels), f(channels, x))]
        nodes += [
            node
            for some in (SOME[:3], ~SOME[:3])
            for node in (cg.where(some, x, channels), cg.where(some, channels, x))
        ]
    with np.errstate(all="ignore"):
        values = evaluate(nodes, {x: zero})
    for node, value in zip(fuse_pointwise(tuple(nodes)), values, strict=True):
        assert keeps_frame(node) == (not value.any()), node


@pytest.mark.parametrize("name", sorted(ROUNDED.keys() - {"ndtr"}))
def test_no_rounded_function_is_taken_for_0(name):
    x, zero = cg.Var((1, 3, 2, 2), name="x"), np.zeros((1, 3, 2, 2), "float32")
    f, nodes = getattr(cg, FUNCTIONS.get(name, name)), []
    for number in NUMBERS:
        nodes += [f(x, cg.Const(number)), f(cg.Const(number), x)] if name in TWO else [f(x + number)]
    with np.errstate(all="ignore"):
        values = evaluate(nodes, {x: zero})
    for node, value in zip(fuse_pointwise(tuple(nodes)), values, strict=True):
        assert not (keeps_frame(node) and value.any()), node
