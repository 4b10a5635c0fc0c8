"""Functions that are made of others, by their formulas in plain NumPy, at many points and with their arguments."""

import math

import numpy as np
import pytest

import cgraph as cg
from tests.support.tolerance import assert_close

X = np.concatenate([np.linspace(-8, 8, 33), [-1e-3, 1e-3, -20.0, 20.0]])


def smooth(x, k):
    """Of x <= 0: k * (exp(x) - 1)."""
    return k * (np.exp(np.minimum(x, 0)) - 1)


def erf(x):
    return np.array([math.erf(v) for v in x])


FORMULAS = {
    "relu": (cg.relu, lambda x: np.where(x > 0, x, 0)),
    "relu6": (cg.relu6, lambda x: np.minimum(np.maximum(x, 0), 6)),
    "leaky_relu": (cg.leaky_relu, lambda x: np.where(x >= 0, x, 0.01 * x)),
    "leaky_relu 0.3": (lambda x: cg.leaky_relu(x, 0.3), lambda x: np.where(x >= 0, x, 0.3 * x)),
    "prelu": (lambda x: cg.prelu(x, 0.25), lambda x: np.where(x >= 0, x, 0.25 * x)),
    "elu": (cg.elu, lambda x: np.where(x > 0, x, smooth(x, 1))),
    "elu 2": (lambda x: cg.elu(x, 2), lambda x: np.where(x > 0, x, smooth(x, 2))),
    "selu": (
        cg.selu,
        lambda x: 1.0507009873554805 * np.where(x > 0, x, smooth(x, 1.6732632423543772)),
    ),
    "selu 2, 3": (lambda x: cg.selu(x, 2, 3), lambda x: 3 * np.where(x > 0, x, smooth(x, 2))),
    "celu": (cg.celu, lambda x: np.where(x > 0, x, smooth(x, 1))),
    "celu 2": (lambda x: cg.celu(x, 2), lambda x: np.where(x > 0, x, smooth(x / 2, 2))),
    "sigmoid": (cg.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "hard_sigmoid": (cg.hard_sigmoid, lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
    "hard_sigmoid 0.5, 0.25": (lambda x: cg.hard_sigmoid(x, 0.5, 0.25), lambda x: np.clip(0.5 * x + 0.25, 0, 1)),
    "hard_swish": (cg.hard_swish, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "swish": (cg.swish, lambda x: x / (1 + np.exp(-x))),
    "softplus": (cg.softplus, lambda x: np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)),
    "mish": (cg.mish, lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    "softsign": (cg.softsign, lambda x: x / (1 + np.abs(x))),
    "thresholded_relu": (cg.thresholded_relu, lambda x: np.where(x > 1, x, 0)),
    "thresholded_relu 2": (lambda x: cg.thresholded_relu(x, 2.0), lambda x: np.where(x > 2, x, 0)),
    "gelu": (cg.gelu, lambda x: x * (1 + erf(x / math.sqrt(2))) / 2),
    "gelu by tanh": (
        lambda x: cg.gelu(x, True),
        lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    ),
    "erf": (cg.erf, erf),
    "erfc": (cg.erfc, lambda x: np.array([math.erfc(v) for v in x])),
    "softmax": (cg.softmax, lambda x: np.exp(x) / np.exp(x).sum()),
    "log_softmax": (cg.log_softmax, lambda x: x - np.log(np.exp(x).sum())),
    "logsumexp": (cg.logsumexp, lambda x: np.log(np.exp(x).sum())),
    "gamma": (lambda x: cg.gamma(x + 0.3), lambda x: np.array([math.gamma(v + 0.3) for v in x])),
    "lgamma": (lambda x: cg.lgamma(x + 0.3), lambda x: np.array([math.lgamma(v + 0.3) for v in x])),
    "rms_norm": (
        lambda x: cg.rms_norm(x, 2.0, 0.5),
        lambda x: 2 * x / np.sqrt((x * x).mean() + 0.5),
    ),
    "rms_norm of 1e-5": (lambda x: cg.rms_norm(x * 1e-3, 1.0), lambda x: x / np.sqrt((x * x).mean() + 10)),
    "round": (lambda x: cg.round(x / 3, 2), lambda x: np.round(x / 3, 2)),
    "round to tens": (lambda x: cg.round(x * 30, -1), lambda x: np.round(x * 30, -1)),
    "round whole": (lambda x: cg.round(x / 3), lambda x: np.rint(x / 3)),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_function_is_its_formula(name):
    function, formula = FORMULAS[name]
    x = cg.Var(X.shape, "float64", "x")
    with np.errstate(over="ignore"):
        want = formula(X)
    for engine in ("reference", "cpu"):
        assert_close(cg.compile(function(x), x, engine=engine)(X), want, 20)


REAL = """exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh
    arctanh reciprocal""".split()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_real_functions_of_whole_numbers_are_floats_as_numpys(dtype):
    """In single precision where NumPy has half."""
    x = np.array([1, 0, 1], dtype)
    with np.errstate(all="ignore"):
        for name in REAL:
            if name != "reciprocal":  # NumPy divides whole numbers
                want = getattr(np, name)(x)
                want = getattr(np, name)(x.astype("float32")) if want.dtype == np.float16 else want
                assert_close(cg.compile(getattr(cg, name)(x), engine="reference")(), want, 20)
        single = np.dtype(dtype).itemsize <= 2
        for name in ("sigmoid", "softplus", "erf", "erfc", "gamma", "lgamma", "digamma", "reciprocal"):
            assert getattr(cg, name)(x).dtype == ("float32" if single else "float64"), name


POWERS = [0, 1, 2, 3, 5, 0.5, -1, -2, -0.5, 1.5, 2.0, 4]


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "float64", "complex128", "bool"])
def test_powers_of_python_numbers_are_numpys(dtype):
    x = (np.arange(1, 6) if dtype != "bool" else np.array([True, False])).astype(dtype)
    x = x * (1 - 2j) if dtype == "complex128" else x
    for y in POWERS:
        if x.dtype.kind in "iu" and isinstance(y, int) and y < 0:  # what NumPy refuses
            assert x.dtype.kind == "u" or not cg.power(x, y).eval()[1:].any()
            continue
        with np.errstate(all="ignore"):
            want = np.power(x, y) if (dtype, y) != ("bool", -1) and (dtype, y) != ("bool", -2) else None
        if want is not None and want.dtype != np.float16:
            assert_close(cg.compile(cg.power(x, y), engine="reference")(), want, 20)


@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_matrices_of_bytes_and_of_numbers_have_all_norms(dtype):
    x = np.array([[3, -1, 0], [2, 5, -4]]).astype(dtype)
    for order in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        for keep in (False, True):
            assert_close(cg.norm(x, order, (0, 1), keepdims=keep).eval(), np.linalg.norm(x, order, (0, 1), keep), 50)
    for order in (None, 0, 1, 2, 3, -1.5, np.inf, -np.inf):
        some = np.abs(x) + 1
        for axis in (0, 1, -1):
            assert_close(cg.norm(some, order, axis).eval(), np.linalg.norm(some, order, axis), 50)


@pytest.mark.parametrize("shape", [(5,), (7,), (3,), (1,)])
@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
def test_sequences_volumes_and_whole_numbers_are_resized_as_images_are(shape, coordinates):
    """What has no op of its own beside what has."""
    x = np.random.default_rng(0).integers(-99, 99, (2, 3, 4)).astype("float64")
    image = x[:, :, None]
    for mode in ("nearest", "linear"):
        want = cg.resize(image, (1, *shape), mode, coordinates).eval()[:, :, 0]
        assert_close(cg.resize(x, shape, mode, coordinates).eval(), want, 10)
        wide = cg.resize(x[:, :, None, :, None], (1, *shape, 1), mode, coordinates).eval()
        assert_close(wide[:, :, 0, :, 0], want, 10)
        whole = cg.resize(x.astype("int32"), shape, mode, coordinates).eval()
        assert_close(whole, want.astype("int32") if mode == "nearest" else want, 10)


def overlap(x, y):
    """Of two boxes, by their corners."""
    sides = [max(min(x[i + 2], y[i + 2]) - max(x[i], y[i]), 0) for i in (0, 1)]
    inside = sides[0] * sides[1]
    both = sum((b[2] - b[0]) * (b[3] - b[1]) for b in (x, y))
    return inside / (both - inside)


def boxes(count, rng):
    low = rng.uniform(0, 5, (count, 2))
    return np.concatenate([low, low + rng.uniform(0.5, 4, (count, 2))], 1)


def test_overlaps_of_boxes():
    x, y = (boxes(n, np.random.default_rng(n)) for n in (5, 7))
    assert_close(cg.box_iou(x, y).eval(), np.array([[overlap(a, b) for b in y] for a in x]), 10)


def test_boxes_as_differences_from_anchors():
    x, anchors, scales = boxes(5, np.random.default_rng(0)), boxes(5, np.random.default_rng(1)), (10.0, 9.0, 5.0, 4.0)
    size, base = x[:, 2:] - x[:, :2], anchors[:, 2:] - anchors[:, :2]
    middle, start = (x[:, 2:] + x[:, :2]) / 2, (anchors[:, 2:] + anchors[:, :2]) / 2
    want = np.concatenate([(middle - start) / base, np.log(size / base)], 1)
    assert_close(cg.box_encode(x, anchors).eval(), want, 10)
    assert_close(cg.box_encode(x, anchors, scales).eval(), want * scales, 10)
    assert_close(cg.box_decode(want, anchors).eval(), x, 10)
    assert_close(cg.box_decode(want * scales, anchors, scales).eval(), x, 10)
    held = np.concatenate([middle - np.minimum(size, base) / 2, middle + np.minimum(size, base) / 2], 1)
    assert_close(cg.box_decode(want, anchors, most=0.0).eval(), held, 10)
