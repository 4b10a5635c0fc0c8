"""Quantisation and products of integers beside onnxruntime: axes, blocks, dtypes, zeros of rows and columns."""

import ml_dtypes
import numpy as np
import pytest

from cgraph.dtypes.storage import STORAGE_DTYPES
from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from tests.support.onnx_models import FLOAT, assert_equal_results, one, results_of
from tests.support.tolerance import assert_near

pytest.importorskip("onnxruntime")
rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (2, 3, 4)).astype("f4")
SCALES = {None: np.array(0.25, "f4"), 0: rng.uniform(0.1, 1, 2).astype("f4"), 1: rng.uniform(0.1, 1, 3).astype("f4")}
FLOATS8 = [np.dtype(getattr(ml_dtypes, x.name)) for x in STORAGE_DTYPES if x.bits == 8]
SCALES |= {-1: rng.uniform(0.1, 1, 4).astype("f4")}


def integers(shape, dtype="u1"):
    bounds = np.iinfo(dtype)
    return rng.integers(bounds.min, bounds.max + 1, shape).astype(dtype)


def weights(shape, dtype="i1"):
    """Bytes within 63 of the middle: without VNNI, ONNX Runtime saturates the sum of two larger products."""
    middle = 128 if dtype == "u1" else 0
    return rng.integers(middle - 63, middle + 64, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2"])
@pytest.mark.parametrize("axis", SCALES)
def test_floats_become_integers_and_back(dtype, axis):
    scale, options = SCALES[axis], {} if axis is None else {"axis": axis}
    zero = rng.integers(3, 20, scale.shape).astype(dtype)
    got = assert_equal_results("QuantizeLinear", [X, scale, zero], **options)[0]
    assert_equal_results("DequantizeLinear", [got, scale, zero], **options)
    if dtype == "u1":
        assert_equal_results("QuantizeLinear", [X, scale], **options)
    assert_equal_results("DequantizeLinear", [got, scale], **options)


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("axis", [None, 1])
@pytest.mark.parametrize("dtype", FLOATS8)
def test_floats_become_floats_of_8_bits_and_back(dtype, axis, saturate):
    """Of numbers within and beyond the range; weights of a file are constants."""
    largest = float(ml_dtypes.finfo(dtype).max)
    x = (X * largest / 2).astype("f4")
    scale, zero = SCALES[axis], np.zeros(SCALES[axis].shape, dtype)
    options = {} if axis is None else {"axis": axis}
    (got,), (want,) = results_of(
        "QuantizeLinear", [x, scale, zero], [1, 2], by="reference", saturate=saturate, **options
    )
    np.testing.assert_array_equal(got, want.astype("f4"))  # the graph does not say the dtype of its output
    is_finite = np.isfinite(got)
    assert is_finite.all() if saturate else 0.1 < is_finite.mean() < 0.9
    stored = rng.uniform(-largest, largest, X.shape).astype(dtype)
    for constant in ([], [0, 1, 2]):
        assert_equal_results("DequantizeLinear", [stored, scale, zero], constant, by="reference", **options)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("block", [2, 3])
def test_blocks_have_scales_of_their_own(axis, block):
    x = rng.uniform(-3, 3, (6, 12)).astype("f4")
    shape = [n // block if i == axis else n for i, n in enumerate(x.shape)]
    scale, zero = rng.uniform(0.1, 1, shape).astype("f4"), rng.integers(0, 9, shape).astype("u1")
    got = assert_equal_results("QuantizeLinear", [x, scale, zero], by="reference", axis=axis, block_size=block)[0]
    assert_equal_results("DequantizeLinear", [got, scale, zero], by="reference", axis=axis, block_size=block)


def test_blocks_that_do_not_fit_are_refused():
    x, scale = [("x", FLOAT, (6, 4))], {"s": np.ones((2, 4), "f4")}
    for block in (3, 4, 5):  # the last block may be shorter
        load(one("QuantizeLinear", x, scale, axis=0, block_size=block))
    for block, needed in ((2, 3), (6, 1), (-3, -2)):
        match = f"2 blocks of {block} along axis 0 of 6 elements do not fit: give {needed}"
        with pytest.raises(FormatError, match=match):
            load(one("QuantizeLinear", x, scale, axis=0, block_size=block))


def test_the_dtype_of_the_result_may_be_told():
    assert_equal_results("QuantizeLinear", [X, SCALES[None]], output_dtype=3)
    with pytest.raises(FormatError, match="quantization to float16 is not supported"):
        load(one("QuantizeLinear", [("x", FLOAT, (3,))], {"s": np.array(1, "f4")}, output_dtype=10))


@pytest.mark.parametrize(
    "x", [X, np.abs(X), -np.abs(X), np.zeros((2, 2), "f4"), X * 1e-3], ids=["both", "+", "-", "0", "small"]
)
def test_the_range_of_a_run_decides_its_scale(x):
    assert_equal_results("DynamicQuantizeLinear", [x], results=3)


@pytest.mark.parametrize("kinds", [("u1", "i1"), ("u1", "u1"), ("i1", "i1")])
@pytest.mark.parametrize("zeros", [(None, None), ((), ()), ((), (4,)), (None, ())])
def test_products_of_integers(kinds, zeros):
    operands = [integers((2, 3), kinds[0]), weights((3, 4), kinds[1])]
    operands += [None if z is None else integers(z, kind) for z, kind in zip(zeros, kinds)]
    while operands[-1] is None:
        operands.pop()
    assert_equal_results("MatMulInteger", operands)


@pytest.mark.parametrize(
    "options", [{}, {"strides": [2, 1], "pads": [1, 0, 0, 2], "dilations": [1, 2]}, {"group": 2}], ids=str
)
def test_convolutions_of_integers_pad_with_their_zero(options):
    x, f = integers((1, 4, 6, 7)), weights((4, 4 // options.get("group", 1), 3, 2), "u1")
    assert_equal_results("ConvInteger", [x, f, integers(()), integers(())], **options)
    assert_equal_results("ConvInteger", [x, f, integers(())], **options)


@pytest.mark.parametrize("constant", [(), (3, 4, 5)], ids=["a run", "weights"])
@pytest.mark.parametrize("columns", [(), (4,)])
def test_products_between_scales(constant, columns):
    scale = rng.uniform(0.01, 0.02, columns).astype("f4")
    operands = [integers((2, 3)), np.array(0.5, "f4"), np.array(100, "u1"), weights((3, 4)), scale]
    operands += [np.zeros(columns, "i1"), np.array(0.25, "f4"), np.array(120, "u1")]
    got, want = results_of("QLinearMatMul", operands, constant)
    assert np.abs(got[0].astype(int) - want[0].astype(int)).max() <= 1 and got[0].std() > 5


@pytest.mark.parametrize("constant", [(), (3, 4, 5, 8)], ids=["a run", "weights"])
@pytest.mark.parametrize(
    "options", [{}, {"strides": [2, 1], "pads": [1, 0, 0, 2], "dilations": [1, 2]}, {"group": 2}], ids=str
)
def test_convolutions_between_scales(constant, options):
    f = weights((4, 4 // options.get("group", 1), 3, 2))
    operands = [integers((1, 4, 6, 7)), np.array(0.5, "f4"), np.array(100, "u1"), f]
    operands += [rng.uniform(0.01, 0.02, 4).astype("f4"), np.zeros(4, "i1"), np.array(2.5, "f4"), np.array(120, "u1")]
    operands += [np.array([100, -2000, 3000, 0], "i4")]
    got, want = results_of("QLinearConv", operands, constant, **options)
    assert got[0].shape == want[0].shape and got[0].dtype == want[0].dtype
    assert np.abs(got[0].astype(int) - want[0].astype(int)).max() <= 1 and got[0].std() > 5


@pytest.mark.parametrize("kind", ["QLinearAdd", "QLinearMul"])
def test_pairs_of_microsoft(kind):
    operands = [integers((2, 3)), np.array(0.5, "f4"), np.array(100, "u1"), integers((3,)), np.array(0.25, "f4")]
    operands += [np.array(30, "u1"), np.array(4.0, "f4"), np.array(120, "u1")]
    got, want = results_of(kind, operands, domain="com.microsoft")
    assert np.abs(got[0].astype(int) - want[0].astype(int)).max() <= 1 and got[0].std() > 5


@pytest.mark.parametrize("kind", ["QLinearLeakyRelu", "QLinearSigmoid"])
@pytest.mark.parametrize("options", [{}, {"alpha": 0.5}], ids=str)
def test_activations_of_microsoft(kind, options):
    options = options if "Leaky" in kind else {}
    operands = [integers((20,)), np.array(0.05, "f4"), np.array(128, "u1"), np.array(0.02, "f4"), np.array(100, "u1")]
    got, want = results_of(kind, operands, (1, 2, 3, 4), domain="com.microsoft", **options)
    assert np.abs(got[0].astype(int) - want[0].astype(int)).max() <= 1 and got[0].std() > 5


@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("quantised", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_gemm_of_microsoft(turned, quantised, bias):
    b = weights((4, 3) if turned else (3, 4))
    operands = [integers((2, 3)), np.array(0.5, "f4"), np.array(100, "u1"), b]
    operands += [rng.uniform(0.01, 0.02, 4).astype("f4"), np.zeros(4, "i1")]
    operands += [np.array([100, -200, 300, 0], "i4") if bias else None]
    if quantised:
        operands += [np.array(0.25, "f4"), np.array(120, "u1")]
    elif not bias:
        operands.pop()
    got, want = results_of("QGemm", operands, (3, 4, 5), domain="com.microsoft", transB=turned)
    assert got[0].dtype == want[0].dtype
    if quantised:
        assert np.abs(got[0].astype(int) - want[0].astype(int)).max() <= 1
    else:
        assert_near(got[0], want[0], "float32 products by their largest")


@pytest.mark.parametrize("options", [{"transA": 1}, {"alpha": 0.5}], ids=str)
def test_gemm_of_microsoft_in_other_forms_is_refused(options):
    operands = [integers((3, 3)), np.array(1, "f4"), np.array(0, "u1")] * 2
    with pytest.raises(
        FormatError, match="QGemm with transA . and alpha .* is not supported. Use transA=0 and alpha=1"
    ):
        results_of("QGemm", operands, domain="com.microsoft", **options)


def test_integers_are_quantised_by_a_scale():
    """They become floats first."""
    x = rng.integers(-500, 500, (2, 3, 4)).astype("i4")
    for scale, options in ((np.array(2.5, "f4"), {}), (np.array([2, 3.5, 4], "f4"), {"axis": 1})):
        zero = np.full(scale.shape, 100, "u1")
        ((got,), _) = results_of("QuantizeLinear", [x, scale, zero], by="nobody", **options)
        wide = scale.reshape(-1, 1) if scale.ndim else scale
        np.testing.assert_array_equal(got, np.clip(np.rint(x / wide) + 100, 0, 255).astype("u1"))


def test_scales_of_blocks_have_the_axes_of_what_they_scale():
    for shape in ((3,), (1, 3, 4)):
        with pytest.raises(FormatError, match="0 blocks of 2 along axis 0 of 6 elements do not fit: give 3"):
            load(one("QuantizeLinear", [("x", FLOAT, (6, 4))], {"s": np.ones(shape, "f4")}, axis=0, block_size=2))


def requantised(total, scale, zero):
    return np.clip(np.rint(total * scale) + zero, 0, 255).astype("u1")


@pytest.mark.parametrize(
    "constant", [(), (1, 2, 4, 5, 6, 7), (1, 2, 3, 4, 5, 6, 7)], ids=["a run", "scales", "weights"]
)
@pytest.mark.parametrize(
    "shapes", [((3,), (3, 4)), ((2, 3), (3,)), ((3,), (3,)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4))]
)
def test_products_of_vectors_and_stacks_between_scales(constant, shapes):
    x, y = integers(shapes[0]), integers(shapes[1], "i1")
    operands = [x, np.array(0.5, "f4"), np.array(100, "u1"), y, np.array(0.015625, "f4"), np.array(3, "i1")]
    operands += [np.array(0.25, "f4"), np.array(120, "u1")]
    ((got,), _) = results_of("QLinearMatMul", operands, constant, by="nobody")
    total = (x.astype(int) - 100) @ (y.astype(int) - 3)
    want = requantised(total, 0.5 * 0.015625 / 0.25, 120)
    assert got.shape == want.shape and np.abs(got.astype(int) - want).max() <= 1


def test_zeros_and_scales_of_rows_and_columns():
    """Of the left operand by rows, of the right one by columns."""
    x, y = integers((2, 3)), integers((3, 4), "i1")
    rows, columns = np.array([7, 200], "u1"), np.array([-3, 0, 5, 100], "i1")
    total = (x.astype(int) - rows[:, None]) @ (y.astype(int) - columns)
    ((got,), _) = results_of("MatMulInteger", [x, y, rows, columns], by="nobody")
    np.testing.assert_array_equal(got, total)
    ((got,), _) = results_of("MatMulInteger", [x[0], y, rows[:1], columns], by="nobody")
    np.testing.assert_array_equal(got, total[0])
    a, b = np.array([0.5, 0.125], "f4"), np.array([1, 2, 0.25, 0.5], "f4") / 64
    operands = [x, a, rows, y, b, columns, np.array(0.25, "f4"), np.array(120, "u1")]
    ((got,), _) = results_of("QLinearMatMul", operands, by="nobody")
    want = requantised(total, a[:, None] * b.astype("f8") / 0.25, 120)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("constant", [(), (3, 4, 5, 8)], ids=["a run", "weights"])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutions_between_scales_of_sequences_and_volumes(constant, axes):
    f, zero = weights((4, 3, *(2, 3, 1)[:axes])), np.array(100, "u1")
    operands = [integers((2, 3, *(5, 6, 4)[:axes])), np.array(0.5, "f4"), zero, f]
    operands += [rng.uniform(0.01, 0.02, 4).astype("f4"), np.zeros(4, "i1"), np.array(2.5, "f4"), np.array(120, "u1")]
    operands += [np.array([100, -2000, 3000, 0], "i4")]
    options = {"strides": [2, 1, 1][:axes], "pads": [1, 0, 1][:axes] + [0, 2, 0][:axes]}
    got, want = results_of("QLinearConv", operands, constant, **options)
    assert got[0].shape == want[0].shape and got[0].dtype == want[0].dtype
    assert np.abs(got[0].astype(int) - want[0].astype(int)).max() <= 1 and got[0].std() > 5


@pytest.mark.parametrize("kind", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("absent", [(2,), (5,), (7,), (2, 5, 7)])
def test_absent_zeros_of_pairs_are_0(kind, absent):
    operands = [integers((2, 3)), np.array(0.5, "f4"), np.array(100, "u1"), integers((3,)), np.array(0.25, "f4")]
    operands += [np.array(30, "u1"), np.array(4.0, "f4"), np.array(20, "u1")]
    numbers = [0 if i in absent else int(operands[i]) for i in (2, 5, 7)]
    given = [None if i in absent else x for i, x in enumerate(operands)]
    while given[-1] is None:
        given.pop()
    ((got,), _) = results_of(kind, given, by="nobody", domain="com.microsoft")
    a, b = (operands[i].astype("f4") - z for i, z in ((0, numbers[0]), (3, numbers[1])))
    total = a * 0.5 + b * 0.25 if kind == "QLinearAdd" else a * 0.5 * (b * 0.25)
    np.testing.assert_array_equal(got, requantised(total, np.float32(0.25), numbers[2]))
