"""Complex numbers: special values and branch cuts, accuracy beside more bits, order, memory, what is refused."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.errors import DTypeError, InputError
from cgraph.ir.graph import apply
from cgraph.ops.linear import Matmul
from cgraph.ops.reduce import Max
from tests.support.kernels import TARGETS
from tests.support.tolerance import assert_close, assert_near, is_near

PARTS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e30, -1e-30, np.inf, -np.inf, np.nan)
ONE = (
    "exp exp2 log log2 log10 sqrt sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh square "
    "reciprocal sign conj rint negative"
).split()
TWO = "add subtract true_divide maximum minimum less less_equal greater greater_equal equal not_equal".split()
UNSAID = {"sin": "re im", "cos": "im", "sinh": "re", "cosh": "im"}
"""Functions and the parts whose sign C99 leaves open where the other part of the result is NaN."""
WIDER = {"complex64": "complex128", "complex128": "clongdouble"}


def grid(dtype: str) -> np.ndarray:
    """Every pair of special parts."""
    part = np.dtype(dtype).type(0).real.dtype
    return np.array([(a, b) for a in PARTS for b in PARTS], part).view(dtype)[:, 0]


def assert_same_parts(got: np.ndarray, want: np.ndarray, unsaid: str = "") -> None:
    """Equal NaN, infinities and zeros with their signs; other numbers near, measured by the magnitude of the whole."""
    size = np.hypot(want.real, want.imag)
    tolerance = 40 * np.finfo(want.dtype).eps
    for name, a, b, other in (("re", got.real, want.real, want.imag), ("im", got.imag, want.imag, want.real)):
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
        free = np.isnan(other) if name in unsaid else np.zeros(a.shape, bool)
        a, b = np.where(free, np.abs(a), a), np.where(free, np.abs(b), b)
        edge = ~np.isfinite(size) | (b == 0)
        near = np.isfinite(size) & (np.abs(a - b) <= tolerance * size)
        same = (a == b) & (np.signbit(a) == np.signbit(b))
        assert (np.isnan(b) | same | near | (edge & np.isfinite(b) & is_near(a, b, "complex parts"))).all()


@pytest.mark.parametrize("dtype", WIDER)
def test_special_values_are_c99s_in_one_kernel_for_all(dtype):
    z = grid(dtype)
    x = cg.Var(z.shape, dtype)
    with np.errstate(all="ignore"):
        found = cg.compile([getattr(cg, name)(x) for name in ONE], [x])(z)
        for name, got in zip(ONE, found):
            if dtype == "complex64" and name == "square":
                continue  # 1e30 squared overflows, and NumPy's order of the products decides on NaN
            assert_same_parts(got, getattr(np, name)(z), UNSAID.get(name, ""))


def test_expm1_has_the_special_values_that_numpys_has_not():
    z = np.array([[np.inf, 0], [np.inf, np.inf], [-np.inf, np.inf], [-np.inf, 3], [np.nan, 0], [-0.0, 0]]).view(
        "complex128"
    )[:, 0]
    want = np.array([[np.inf, 0], [np.inf, np.nan], [-1, 0], [-1, 0], [np.nan, 0], [0, 0]])
    for engine in ("cpu", "reference"):
        x = cg.Var(z.shape, "complex128")
        with np.errstate(all="ignore"):
            got = cg.compile(cg.expm1(x), [x], engine=engine)(z)
        np.testing.assert_array_equal(np.stack([got.real, got.imag], 1), want)
        assert not np.signbit(got.real[-1])


@pytest.mark.parametrize("dtype", WIDER)
def test_two_operands_with_special_values(dtype):
    z = grid(dtype)
    a, b = (v.ravel().copy() for v in np.meshgrid(z[::5], z[1::3]))
    x, y = cg.Var(a.shape, dtype), cg.Var(a.shape, dtype)
    with np.errstate(all="ignore"):
        found = cg.compile([getattr(cg, name)(x, y) for name in TWO], [x, y])(a, b)
        for name, got in zip(TWO, found):
            want = getattr(np, name)(a, b)
            if want.dtype == bool:
                np.testing.assert_array_equal(got, want)
            else:
                assert_same_parts(got, want)


@pytest.mark.parametrize("dtype", WIDER)
def test_functions_are_within_four_units_of_rounding_of_the_magnitude(dtype):
    rng = np.random.default_rng(3)
    near = np.exp(rng.uniform(-7, 2, (2, 4000))) * rng.choice([-1, 1], (2, 4000))
    circle = (1 + rng.normal(size=4000) * 10.0 ** rng.uniform(-15, -1, 4000)) * np.exp(2j * np.pi * rng.random(4000))
    z = np.concatenate([near[0] + 1j * near[1], circle]).astype(dtype)
    x = cg.Var(z.shape, dtype)
    found = cg.compile([getattr(cg, name)(x) for name in ONE], [x])(z)
    for name, got in zip(ONE, found):
        want = getattr(np, name)(z.astype(WIDER[dtype]))
        size = np.abs(want)
        assert (np.abs(got - want) <= 4 * np.finfo(dtype).eps * size).all(), name


def test_sorted_order_puts_nan_behind_as_numpy_does():
    z = np.concatenate([np.rint(grid("complex128")), [complex(1, np.nan), complex(np.nan, 2), 1 - 5j]])
    x = cg.Var(z.shape, "complex128")
    got, order, most, place = cg.compile([cg.sort(x), cg.argsort(x), cg.max(x), cg.argmax(x)], [x])(z)
    np.testing.assert_array_equal(got, np.sort(z))
    np.testing.assert_array_equal(order, np.argsort(z, kind="stable"))
    np.testing.assert_array_equal([most, place], [np.max(z), np.argmax(z)])


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("dtype", WIDER)
def test_every_target_reads_complex_numbers_wherever_they_lie(name, dtype):
    """Arrays that begin at odd multiples of their parts' size, with strides, of lengths around whole vectors."""
    rng = np.random.default_rng(1)
    for n in (1, 7, 64, 67):
        raw = rng.normal(size=6 * n + 1).astype(np.dtype(dtype).type(0).real.dtype)
        a = raw[1 : 2 * n + 1].view(dtype)
        b = raw[2 * n + 1 :].view(dtype)[::-2]
        x, y = cg.Var((n,), dtype), cg.Var((n,), dtype)
        total = cg.sum(x * y)
        f = cg.compile([x * y + 2j, cg.abs(x) < 1, total], [x, y], engine=CpuEngine(target=name))
        one, two, three = f(a, b)
        assert_near(one, a * b + 2j, "complex products")
        np.testing.assert_array_equal(two, np.abs(a) < 1)
        assert_near(three, np.sum(a * b), "complex sums")


def test_sums_keep_their_rounding_errors_as_real_ones_do():
    rng = np.random.default_rng(2)
    z = (rng.normal(size=300_000) + 1j * rng.normal(size=300_000)).astype("complex64")
    x = cg.Var(z.shape, "complex64")
    got = cg.compile(cg.sum(x), [x])(z)
    parts = cg.Var(z.shape)
    f = cg.compile(cg.sum(parts), [parts])
    assert abs(got - z.sum(dtype="complex128")) < 1e-3
    assert abs(f(z.real.copy()) - got.real) < 1e-4


STEPS = (
    lambda x, y: x * y + 1j,
    lambda x, y: cg.conj(x) - y,
    lambda x, y: cg.concat([x[:, 2:], y[:, :2]], 1),
    lambda x, y: cg.where(cg.real(x) > cg.imag(y), x, y),
    lambda x, y: cg.complex(cg.abs(x), cg.real(y)),
    lambda x, y: cg.set_slice(x, (slice(1, -1), slice(1, -1)), 0.5 * (y[2:, 1:-1] - x[:-2, 1:-1])),
    lambda x, y: x - cg.mean(y, 0, keepdims=True),
    lambda x, y: cg.tanh(x)[::-1] * cg.transpose(y),
    lambda x, y: cg.cumsum(x, 1) / 6 @ y / 6,
    lambda x, y: cg.take(x, [5, 0, 0, 3, 2, 1]) + y,
)


@pytest.mark.parametrize("seed", range(6))
def test_random_graphs_give_what_they_mean_in_poison_mode(seed):
    rng = np.random.default_rng(seed)
    x, y = (cg.Var((6, 6), "complex64", name) for name in "xy")
    nodes = [x, y]
    for _ in range(12):
        i, j = rng.integers(len(nodes), size=2)
        nodes.append(STEPS[rng.integers(len(STEPS))](nodes[i], nodes[j]))
    loss = cg.sum(cg.abs(nodes[-1]))
    outputs = [nodes[-1], nodes[-3], loss, *cg.gradient(loss, [x, y])]
    given = [(rng.uniform(-1, 1, (6, 6)) + 1j * rng.uniform(-1, 1, (6, 6))).astype("complex64") for _ in range(2)]
    got = cg.compile(outputs, [x, y], engine=CpuEngine(threads=2, poison=True))(*given)
    want = cg.compile(outputs, [x, y], engine="reference")(*given)
    for a, b in zip(got, want):
        assert_close(a, b, 50)


X = cg.Var((3, 3), "complex64", "x")
REFUSED = {
    "no ordered reduction of the bits": lambda: apply(Max((0,)), X),
    "no product of the bits": lambda: apply(Matmul(), X, X),
    "a real dtype": lambda: X.astype("float32"),
    "floor": lambda: cg.floor(X),
    "remainder": lambda: X % 2,
    "bits": lambda: X & X,
    "an image": lambda: cg.max_pool2d(cg.reshape(X, (1, 1, 3, 3)), 2),
    "a softmax": lambda: cg.softmax(X),
    "what is made of an order": lambda: cg.elu(X),
    "a mean of squares": lambda: cg.rms_norm(X, X),
    "a gradient without a seed": lambda: cg.gradient(cg.sum(X), X),
    "a complex number in a real dtype": lambda: cg.full((2,), 1j, "float32"),
    "parts that are complex": lambda: cg.complex(X, X),
}


@pytest.mark.parametrize("build", REFUSED.values(), ids=REFUSED)
def test_what_has_no_meaning_is_refused(build):
    with pytest.raises((DTypeError, TypeError)):
        build()


def test_inputs_are_rounded_to_their_dtype_and_refused_beyond_its_range():
    f = cg.compile(X * 2, [X])
    assert f(np.ones((3, 3), "complex128")).dtype == "complex64"
    with pytest.raises(InputError, match="complex64"):
        f(np.full((3, 3), 1e300j))
    assert f([[1j, 0, 0]] * 3)[0, 0] == 2j


def test_a_real_loss_descends_against_the_conjugate_gradient():
    """The convention: df/dx - i df/dy, so the step downhill is along its conjugate."""
    z = cg.Var((4,), "complex128", "z").assign(np.array([1 + 2j, -1j, 3, 0.5 - 1j]))
    loss = cg.sum(cg.square(cg.abs(z - (1 + 1j))))
    step = cg.compile(loss, updates={z: z - 0.25 * cg.conj(cg.gradient(loss, z))})
    losses = [float(step()) for _ in range(20)]
    assert losses[-1] < 1e-9 < losses[0]


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0), (0, 3), (2, 0, 4)])
def test_parts_stand_in_turn(shape):
    x = np.random.default_rng(0).standard_normal((*shape, 2)) @ np.array([1, 1j])
    got = cg.as_parts(x).eval()
    want = np.stack([x.real, x.imag], -1)
    np.testing.assert_array_equal(got, want.reshape((*shape[:-1], 2 * shape[-1]) if shape else (2,)))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "float64", "complex128"])
@pytest.mark.parametrize("name", ["real", "imag", "conjugate", "isreal", "iscomplex"])
def test_parts_of_numbers_that_are_not_finite_are_numpys(name, dtype):
    numbers = np.array([0, -0.0, 1, np.inf, -np.inf, np.nan])
    x = (numbers if dtype[0] in "fc" else numbers[:3]).astype(dtype)
    if dtype[0] == "c":
        x.imag = numbers[::-1]
    want = getattr(np, name)(x)
    for engine in ("reference", "cpu"):
        got = cg.compile(getattr(np, name)(cg.Const(x)), engine=engine)()
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
