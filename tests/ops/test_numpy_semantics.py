"""NumPy as the oracle: promotion, broadcasting, indexing, reductions, special values, every dtype, rank 0 to 6."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.errors import DTypeError
from cgraph.ir.spec import DTYPES
from tests.support.tolerance import assert_close, assert_near

NAMES = [str(d) for d in DTYPES]
REAL = [str(d) for d in DTYPES if d.kind != "c"]  # special values of complex numbers: `tests/ops/test_complex.py`
FLOATS = ["float32", "float64"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -1.5, 2.5, 1e30, -1e30, 1e-30, np.inf, -np.inf, np.nan]
every_dtype = pytest.mark.parametrize("dtype", NAMES)


def special(dtype: str) -> np.ndarray:
    """Values at which an op of this dtype may go wrong."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return np.array(SPECIAL, kind)
    if kind.kind == "b":
        return np.array([True, False])
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    return np.array([low, low + 1, 0, 1, 2, 3, 7, high - 1, high], kind)


def numpy_result(function, *xs):
    """What NumPy gives, or None where it refuses; in float32 where it would compute in float16."""
    with np.errstate(all="ignore"):
        try:
            found = function(*xs)
        except (TypeError, ValueError):
            return None
        return function(*(x.astype("float32") for x in xs)) if found.dtype == np.float16 else found


def run(outputs, engine: str = "cpu"):
    """The values, with no pass that would compute what is constant by other means than kernels."""
    return cg.compile(outputs, engine=engine, passes=False)()


UNARY = """negative abs sign square floor ceil trunc rint exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan arcsin
    arccos arctan sinh cosh tanh arcsinh arccosh arctanh isnan isinf isfinite logical_not invert positive
    reciprocal""".split()
BINARY = """add subtract multiply true_divide floor_divide remainder maximum minimum less less_equal greater
    greater_equal equal not_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor arctan2 hypot
    fmod copysign""".split()


@pytest.mark.slow
@pytest.mark.parametrize("name", UNARY)
def test_unary_functions_at_special_values_of_every_dtype(name):
    function = getattr(np, name)
    cases = [(dtype, special(dtype)) for dtype in REAL]
    wanted = [(x, numpy_result(function, x)) for _, x in cases]
    if name == "reciprocal":  # a float function here; NumPy divides whole numbers
        wanted = [(x, want) for x, want in wanted if x.dtype.kind == "f"]
    wanted = [(x, want) for x, want in wanted if want is not None]
    nodes = [function(cg.Const(x)) for x, _ in wanted]
    for engine in ("reference", "cpu"):
        for got, (x, want) in zip(run(nodes, engine), wanted):
            assert got.dtype == want.dtype, (x.dtype, got.dtype, want.dtype)
            assert_close(got, want, 20)


@pytest.mark.slow
@pytest.mark.parametrize("name", BINARY)
def test_binary_functions_at_special_values_of_every_dtype(name):
    function = getattr(np, name)
    wanted = []
    for dtype in REAL:
        x = special(dtype)
        want = numpy_result(function, x[:, None], x)
        if want is not None:
            wanted.append((x, want))
    nodes = [function(cg.Const(x[:, None]), cg.Const(x)) for x, _ in wanted]
    for engine in ("reference", "cpu"):
        for got, (x, want) in zip(run(nodes, engine), wanted):
            assert got.dtype == want.dtype, (x.dtype, got.dtype, want.dtype)
            assert_close(got, want, 5)


@pytest.mark.parametrize("name", ["add", "multiply", "true_divide", "maximum", "less", "where", "concat"])
@every_dtype
def test_promotion_of_two_arrays_is_numpys(name, dtype):
    for other in NAMES:
        x, y = np.ones(2, dtype), np.ones(2, other)
        if name == "where":
            want, got = np.where(x > 0, x, y), cg.where(x > 0, cg.Const(x), cg.Const(y))
        elif name == "concat":
            want, got = np.concatenate([x, y]), np.concatenate([cg.Const(x), cg.Const(y)])
        else:
            want, got = getattr(np, name)(x, y), getattr(np, name)(cg.Const(x), cg.Const(y))
        dtype_wanted = np.dtype("float32") if want.dtype == np.float16 else want.dtype
        assert got.dtype == dtype_wanted, (dtype, other)


@pytest.mark.parametrize("number", [True, 1, 1.5])
@every_dtype
def test_promotion_with_a_python_number_is_numpys(dtype, number):
    x = np.ones(2, dtype)
    for function in (np.add, np.multiply, np.maximum, np.true_divide):
        want = function(x, number)
        dtype_wanted = np.dtype("float32") if want.dtype == np.float16 else want.dtype
        assert function(cg.Const(x), number).dtype == dtype_wanted
        assert function(number, cg.Const(x)).dtype == dtype_wanted


@every_dtype
def test_operators_are_numpys(dtype):
    x = np.array([3, 1, 2], dtype)
    node = cg.Const(x)
    for use in (
        lambda v: v + v, lambda v: v * 1, lambda v: v / 2, lambda v: v // 2, lambda v: v % 2, lambda v: 5 - v,
        lambda v: v < 2, lambda v: v == 2, lambda v: v != 2, lambda v: -v, lambda v: abs(v), lambda v: v @ v,
        lambda v: v & v, lambda v: v ^ v, lambda v: ~v, lambda v: v << 1, lambda v: v >> 1, lambda v: v**2,
    ):  # fmt: skip
        want = numpy_result(use, x)
        if dtype == "bool" and np.asarray(want).dtype == np.int8 and use(node).dtype == np.int64:
            continue  # NumPy's operator ** takes int8 for bool, its function power int64, as here
        if want is None:
            with pytest.raises(DTypeError):
                use(node)
            continue
        got = run(use(node), "reference")
        assert_close(got, np.asarray(want))


@every_dtype
def test_casts_between_all_dtypes(dtype):
    values = [0, 1, 3, 100] if np.dtype(dtype).kind == "u" else [0, 1, -3, 100] if dtype != "bool" else [0, 1]
    x = np.array(values).astype(dtype)
    names = [t for t in NAMES if np.dtype(dtype).kind != "c" or t == "bool" or t not in REAL]  # else it is refused
    got = run([cg.Const(x).astype(t) for t in names])
    for t, y in zip(names, got):
        assert_close(y, x.astype(t))


@settings(max_examples=60)
@given(
    shapes=arrays.mutually_broadcastable_shapes(num_shapes=3, max_dims=6, min_side=0, max_side=3),
    seed=st.integers(0, 99),
)
def test_broadcasting_over_rank_0_to_6_and_empty_axes(shapes, seed):
    rng = np.random.default_rng(seed)
    x, y, z = (rng.normal(size=s).astype("f4") for s in shapes.input_shapes)
    want = np.where(x > y, x * y + z, np.minimum(y, z))
    a, b, c = (cg.Const(v) for v in (x, y, z))
    for engine in ("reference", "cpu"):
        got = run(np.where(a > b, a * b + c, np.minimum(b, c)), engine)
        assert_close(got, want)


@st.composite
def indexed(draw, allow_arrays: bool) -> tuple[tuple[int, ...], object]:
    shape = draw(arrays.array_shapes(min_dims=1, max_dims=5, min_side=1, max_side=4))
    basic = arrays.basic_indices(shape, allow_newaxis=True, max_dims=6)
    if not allow_arrays:
        return shape, draw(basic)
    parts: list[object] = []
    rank = draw(st.integers(0, 2))
    inner = draw(arrays.array_shapes(min_dims=rank, max_dims=rank, max_side=3)) if rank else ()
    for n in shape:
        kind = draw(st.sampled_from(("slice", "array", "whole", "new")))
        if kind == "new":
            parts.append(None)
        if kind == "array":
            parts.append(draw(arrays.arrays("int64", inner, elements=st.integers(-n, n - 1))))
        elif kind == "whole":
            parts.append(draw(st.integers(-n, n - 1)))
        else:
            parts.append(draw(st.slices(n)))
    return shape, tuple(parts)


@settings(max_examples=80)
@given(drawn=indexed(allow_arrays=False))
def test_basic_indexing(drawn):
    shape, index = drawn
    x = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    for engine in ("reference", "cpu"):
        assert_close(run(cg.Const(x)[index] + 0, engine), np.asarray(x[index]))


@settings(max_examples=80)
@given(drawn=indexed(allow_arrays=True))
def test_indexing_with_integer_arrays(drawn):
    shape, index = drawn
    x = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    for engine in ("reference", "cpu"):
        assert_close(run(cg.Const(x)[index] + 0, engine), np.asarray(x[index]))


@settings(max_examples=60)
@given(drawn=indexed(allow_arrays=False))
def test_set_slice_is_assignment_to_a_copy(drawn):
    shape, index = drawn
    x = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    want = x.copy()
    want[index] = -want[index]
    got = run(cg.set_slice(cg.Const(x), index, -cg.Const(x)[index]))
    assert_close(got, want)


REDUCTIONS = ["sum", "prod", "min", "max", "any", "all", "mean", "var", "std"]


@settings(max_examples=60)
@given(
    data=st.data(),
    name=st.sampled_from(REDUCTIONS),
    dtype=st.sampled_from(["bool", "int8", "uint16", "int64", *FLOATS]),
)
def test_reductions_over_any_axes(data, name, dtype):
    shape = data.draw(arrays.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4))
    axes = data.draw(st.none() | st.lists(st.integers(0, max(len(shape) - 1, 0)), unique=True).map(tuple))
    axes = None if not shape else axes
    keep = data.draw(st.booleans())
    rng = np.random.default_rng(0)
    x = (rng.integers(0, 4, shape) if name == "prod" else rng.integers(-50, 50, shape)).astype(dtype)
    with np.errstate(all="ignore"):
        try:
            want = getattr(np, name)(x, axis=axes, keepdims=keep)
        except ValueError:
            with pytest.raises(ValueError):
                getattr(np, name)(cg.Const(x), axis=axes, keepdims=keep)
            return
    node = getattr(np, name)(cg.Const(x), axis=axes, keepdims=keep)
    for engine in ("reference", "cpu"):
        assert_close(run(node, engine), np.asarray(want), 10)


@settings(max_examples=40)
@given(data=st.data(), name=st.sampled_from(["argmin", "argmax"]))
def test_places_of_extremes(data, name):
    shape = data.draw(arrays.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5))
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    values = st.sampled_from([-1.0, 0.0, -0.0, 2.0, np.nan, np.inf])
    x = data.draw(arrays.arrays("float32", shape, elements=values))
    for engine in ("reference", "cpu"):
        got = run(getattr(np, name)(cg.Const(x), axis=axis), engine)
        assert_close(got, np.asarray(getattr(np, name)(x, axis=axis)))


@settings(max_examples=40)
@given(data=st.data(), dtype=st.sampled_from(["int8", "int64", *FLOATS]))
def test_matmul_of_any_ranks(data, dtype):
    m, k, n = (data.draw(st.integers(0, 5)) for _ in range(3))
    batch = data.draw(arrays.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3))
    left, right = batch.input_shapes
    shapes = data.draw(
        st.sampled_from([((*left, m, k), (*right, k, n)), ((k,), (*right, k, n)), ((*left, m, k), (k,)), ((k,), (k,))])
    )
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-5, 5, s).astype(dtype) for s in shapes)
    for engine in ("reference", "cpu"):
        assert_close(run(cg.Const(x) @ cg.Const(y), engine), np.asarray(x @ y))


@settings(max_examples=40)
@given(data=st.data(), name=st.sampled_from(["sort", "argsort", "cumsum", "cumprod"]))
def test_along_an_axis(data, name):
    shape = data.draw(arrays.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    dtype = data.draw(st.sampled_from(["int8", "uint32", *FLOATS]))
    x = np.random.default_rng(0).integers(0, 4, shape).astype(dtype)
    more = {"kind": "stable"} if "sort" in name else {}
    for engine in ("reference", "cpu"):
        got = run(getattr(np, name)(cg.Const(x), axis=axis), engine)
        assert_close(got, np.asarray(getattr(np, name)(x, axis=axis, **more)))


@pytest.mark.parametrize("subscripts", [
    "ij,jk->ik", "ij->ji", "ii", "ii->i", "ij,ij->", "i,j->ij", "bij,bjk->bik", "...ij,...jk->...ik", "ijk,jil->kl",
    "ij,kj", "ij,jk,kl->il", "iij->j", "ab,ab,ab->a",
])  # fmt: skip
def test_einsum(subscripts):
    rng = np.random.default_rng(0)
    terms = subscripts.split("->")[0].split(",")
    xs = [rng.normal(size=[3] * (len(t.replace("...", "")) + 2 * ("..." in t))) for t in terms]
    got = cg.einsum(subscripts, *xs)
    assert_close(run(got), np.asarray(np.einsum(subscripts, *xs)))


@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_places_and_scattered_rows_while_another_axis_is_empty(engine):
    a, rows = np.zeros((3, 0, 5), "float32"), np.array([2, 0])
    x = cg.Var(a.shape, name="x")
    for function, numpy in ((cg.argmax, np.argmax), (cg.argmin, np.argmin)):
        for node, inputs in ((function(x, axis=2), (x,)), (function(cg.Const(a), axis=2), ())):
            got = cg.compile(node, inputs, engine=engine)(*[a] * len(inputs))
            np.testing.assert_array_equal(got, numpy(a, 2))
    written = cg.scatter(x, rows, np.zeros((2, 0, 5), "float32"))
    assert cg.compile(written, [x], engine=engine)(a).shape == a.shape


@settings(max_examples=30)
@given(data=st.data(), mode=st.sampled_from(["constant", "edge", "reflect"]))
def test_padding_of_any_axes(data, mode):
    shape = data.draw(arrays.array_shapes(max_dims=3, max_side=3))
    widths = [data.draw(st.tuples(st.integers(0, 5), st.integers(0, 5))) for _ in shape]
    x = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    np.testing.assert_array_equal(run(cg.pad(x, widths, mode), "reference"), np.pad(x, widths, mode))


@settings(max_examples=20)
@given(n=st.none() | st.integers(1, 9), axis=st.integers(-2, 1), seed=st.integers(0, 99))
def test_fourier_transforms(n, axis, seed):
    """Complex numbers are pairs on a last axis of their own."""
    x, y = np.random.default_rng(seed).standard_normal((2, 3, 5))

    def pairs(z):
        return np.stack([z.real, z.imag], -1)

    got = [cg.fft(pairs(x + 1j * y), n, axis), cg.ifft(pairs(x + 1j * y), n, axis), cg.rfft(x, n, axis)]
    want = [pairs(f(z, n, axis)) for f, z in ((np.fft.fft, x + 1j * y), (np.fft.ifft, x + 1j * y), (np.fft.rfft, x))]
    for mine, theirs in zip(run(got, "reference"), want, strict=True):
        assert_close(mine, theirs)
    assert_close(run(cg.irfft(pairs(x + 1j * y), n, axis), "reference"), np.fft.irfft(x + 1j * y, n, axis))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ddof", range(5))
@pytest.mark.parametrize("count", range(5))
def test_variances_of_any_count_and_ddof_are_numpys_and_never_negative(count, ddof):
    """No more elements than ddof: NaN or infinity. Through both public functions, and with elements left out."""
    x = np.random.default_rng(3).normal(size=(3, count))
    x[0] = 2.0
    kept = np.arange(count + 2) < count
    wide = np.concatenate([x, np.full((3, 2), 7.0)], 1)
    for name in ("var", "std"):
        with np.errstate(all="ignore"):
            want = getattr(np, name)(x, 1, ddof=ddof)
        node, all_of_it = cg.Var(x.shape, "float64", "x").assign(x), cg.Var(wide.shape, "float64", "w").assign(wide)
        found = [
            getattr(cg, name)(node, 1, ddof=ddof), getattr(np, name)(node, 1, ddof=ddof),
            getattr(np, name)(node, axis=1, correction=ddof), getattr(np, name)(all_of_it, 1, ddof=ddof, where=kept),
        ]  # fmt: skip
        for values in (evaluate(found), cg.compile(found)()):
            for got in values:
                assert_near(got, want, "float64 special points")
                assert not (got < 0).any()
        nan = np.where(kept, wide, np.nan)
        with np.errstate(all="ignore"):
            want = getattr(np, f"nan{name}")(nan, 1, ddof=ddof)
        missing = cg.Var(nan.shape, "float64", "m").assign(nan)
        assert_near(getattr(np, f"nan{name}")(missing, 1, ddof=ddof).eval(), want, "float64 special points")
