"""Storage dtypes: each number, rounded once, with the same bits on every target; nothing computes in them.

Every row of the table `cgraph.dtypes.storage` is compared with the package ml_dtypes.
"""

import ml_dtypes
import numpy as np
import pytest

import cgraph as cg
from cgraph.dtypes.convert import convert
from cgraph.dtypes.storage import BFLOAT16, BY_NAME
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.errors import DTypeError, InputError
from cgraph.ir.graph import apply
from cgraph.ops.physical.in_place import InPlace
from cgraph.ops.physical.rerun import Rerun
from tests.support.kernels import TARGETS

PEERS = {name: x.dtype if x.is_native else np.dtype(getattr(ml_dtypes, name)) for name, x in BY_NAME.items()}
ALL = {name: np.arange(1 << x.bits).astype(x.unsigned) for name, x in BY_NAME.items()}
INTEGERS = ("bool", "int8", "uint8", "int16", "uint16", "int32", "int64", "uint64")
BESIDE = (0, 1, 0xFFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001)  # bits below the last that is held


def on(target: str, nodes, inputs) -> cg.Function:
    return cg.compile(nodes, inputs, engine=CpuEngine(target=target, poison=True))


def bits(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")


def floats(dtype: str) -> np.ndarray:
    """Each number that storage dtypes represent, what lies just beside it and halfway to the next, and any bits."""
    exact = np.concatenate([ALL[name].view(peer).astype("float32") for name, peer in PEERS.items()]).view(np.uint32)
    anything = np.random.default_rng(0).integers(0, 1 << 32, 50_000, dtype=np.uint32)
    beside = (exact[:: 1 + i] + np.uint32(n) for i, n in enumerate(BESIDE))
    singles = np.concatenate([*beside, anything]).view(np.float32)
    if dtype == "float32":
        return singles
    with np.errstate(all="ignore"):
        x = singles[::3].astype("float64")
        ends = [1e308, -1e308, 5e-324, -5e-324, np.inf, -np.inf, np.nan]
        return np.concatenate([x, x * (1 + 2.0**-40), x * (1 - 2.0**-40), ends])


@pytest.mark.parametrize("dtype", PEERS)
def test_all_numbers_widen_as_the_peer_says_on_every_target(dtype):
    given = ALL[dtype].view(PEERS[dtype])
    x = cg.Var(given.shape, dtype)
    with np.errstate(invalid="ignore"):
        want = given.astype("float32")
    number = ~np.isnan(want)
    nodes = [x.astype("float32"), x[::3].astype("float64"), x.astype("float32")[5:9] * 2]
    found = [on(target, nodes, [x])(given) for target in TARGETS]
    np.testing.assert_array_equal(found[0][0][number].view(np.uint32), want[number].view(np.uint32))
    assert np.isnan(found[0][0][~number]).all()
    np.testing.assert_array_equal(found[0][1][number[::3]], want[::3][number[::3]])
    for others in found[1:]:
        assert all(a.tobytes() == b.tobytes() for a, b in zip(others, found[0]))


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("dtype", PEERS)
def test_numbers_are_rounded_once_on_every_target(dtype, source):
    given = floats(source)
    x = cg.Var(given.shape, source)
    nodes = [x.astype(dtype), x.astype(dtype).astype(source), x[::5].astype(dtype)]
    found = [on(target, nodes, [x])(given) for target in TARGETS]
    for others in found[1:]:
        assert all(a.tobytes() == b.tobytes() for a, b in zip(others, found[0]))
    held, back, strided = found[0]
    number = ~np.isnan(given)
    np.testing.assert_array_equal(
        bits(held)[number], bits(cg.compile(nodes[0], [x], engine="reference")(given))[number]
    )
    assert np.isnan(back[~number]).all() and held.dtype == nodes[0].dtype
    np.testing.assert_array_equal(bits(strided), bits(held)[::5])
    if source == "float32" or BY_NAME[dtype].is_native:  # ml_dtypes rounds float64 twice
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(bits(held)[number], bits(given.astype(PEERS[dtype]))[number])


def test_float64_halfway_to_the_next_bfloat16_but_for_one_bit_is_not_rounded_twice():
    above, below = 1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8 - 2.0**-40
    held = cg.Const([above, below, -above, -below], "bfloat16").astype("float64").eval()
    assert held.tolist() == [1 + 2.0**-7, 1, -1 - 2.0**-7, -1]


def rounded(n: int, digits: int) -> int:
    """An integer rounded to some binary digits, ties to even, by integer arithmetic."""
    places = max(abs(n).bit_length() - digits, 0)
    whole, rest = divmod(abs(n), 1 << places)
    whole += 2 * rest > 1 << places or (2 * rest == 1 << places and whole % 2)
    return (whole << places) * (1 if n >= 0 else -1)


def beside_ties(digits: int, integer: str) -> list[int]:
    """Integers halfway between two of some binary digits, and what lies just beside them, of any size."""
    limits, rng = np.iinfo(integer), np.random.default_rng(4)
    numbers = {0, limits.min, limits.max}
    for places in range(1, 65 - digits):
        firsts = [1 << (digits - 1), (1 << digits) - 1, *rng.integers(1 << (digits - 1), 1 << digits, 4).tolist()]
        ties = [(first << places) + (1 << (places - 1)) for first in firsts]
        near = [tie + step for tie in ties for step in (-1024, -1, 0, 1, 1023)]
        numbers |= {sign * n for n in near for sign in (1, -1)}
    return sorted(n for n in numbers if limits.min <= n <= limits.max)


@pytest.mark.parametrize("integer", ["int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("dtype", PEERS)
def test_whole_numbers_beside_ties_are_rounded_once_everywhere(dtype, integer):
    digits, most = ml_dtypes.finfo(PEERS[dtype]).nmant + 1, float(ml_dtypes.finfo(PEERS[dtype]).max)
    pairs = [(n, rounded(n, digits)) for n in beside_ties(digits, integer)]
    given, want = (np.array(x, t) for x, t in zip(zip(*(p for p in pairs if abs(p[1]) <= most)), (integer, "float64")))
    x = cg.Var(given.shape, integer)
    node = x.astype(dtype)
    engines = [CpuEngine(target=target) for target in TARGETS]
    functions = [cg.compile(node, [x], engine=engine) for engine in (*engines, "reference", "cuda-sim")]
    found = [np.asarray(f(given)) for f in functions]
    found += [
        cg.Const(given).astype(dtype).eval(),
        cg.Const(given, dtype).eval(),
        cg.jit(lambda x: x.astype(dtype))(given),
    ]
    for held in found:
        np.testing.assert_array_equal(held.view(PEERS[dtype]).astype("float64"), want)


@pytest.mark.parametrize("integer", INTEGERS)
@pytest.mark.parametrize("dtype", PEERS)
def test_whole_numbers_go_in_and_out_as_the_reference_says(dtype, integer):
    given = np.random.default_rng(1).integers(0, 1 << 63, 500).astype(integer)
    x, y = cg.Var(given.shape, integer), cg.Var(ALL[dtype].shape, dtype)
    for node, var, value in ((x.astype(dtype), x, given), (y.astype(integer), y, ALL[dtype].view(PEERS[dtype]))):
        want = cg.compile(node, [var], engine="reference")(value).tobytes()
        assert all(on(target, node, [var])(value).tobytes() == want for target in TARGETS)


@pytest.mark.parametrize("dtype", PEERS)
def test_what_moves_values_takes_them_as_they_are(dtype):
    given = bits(np.random.default_rng(2).normal(size=(6, 10)).astype(PEERS[dtype]))
    x, places = cg.Var((6, 10), dtype), cg.Const(np.array([4, 0, 0]))
    moved = [x.T, x.reshape(4, 15)[1:3], cg.take(x, places, axis=1), cg.broadcast_to(x[:1], (5, 10)), x[::-1, ::2]]
    want = [given.T, given.reshape(4, 15)[1:3], given[:, [4, 0, 0]], np.tile(given[:1], (5, 1)), given[::-1, ::2]]
    for engine in ("cpu", "reference", "cuda-sim"):
        for got, expected in zip(cg.compile(moved, [x], engine=engine)(given.view(PEERS[dtype])), want, strict=True):
            np.testing.assert_array_equal(bits(np.asarray(got)), expected)


@pytest.mark.parametrize("dtype", PEERS)
def test_functions_of_one_or_two_widen_and_everything_else_refuses(dtype):
    x = cg.Var((3, 3), dtype, "x")
    assert {node.dtype.name for node in (x + x, x * 2, cg.sin(x), abs(x), x @ x, x < 1.5)} == {"float32", "bool"}
    assert (x + np.float64(1)).dtype == np.float64 and np.concatenate([x, x]).dtype == np.float32
    assert {f(x, 0).dtype for f in (cg.cumsum, cg.mean, cg.var, cg.softmax)} == {np.dtype("float32")}
    for refused in (cg.sum, cg.sort, cg.max, cg.argmin):
        with pytest.raises(DTypeError, match=rf"does not compute in {dtype}; use x.astype\('float32'\)"):
            refused(x, 0)


@pytest.mark.parametrize("dtype", PEERS)
def test_an_input_of_a_storage_dtype_that_does_not_fit_is_named(dtype):
    x = cg.Var((3,), name="x")
    with pytest.raises(InputError, match=rf"x expects float32\[3\], got {dtype}\[3\]"):
        cg.compile(x, [x])(np.zeros(3, PEERS[dtype]))


def test_bfloat16_arrays_of_the_package_and_bits_are_one_thing():
    given = np.array([1.5, -2, np.inf], ml_dtypes.bfloat16)
    x = cg.Var((3,), "bfloat16", "x")
    function = cg.compile(x, [x])
    assert cg.Var((3,), ml_dtypes.bfloat16).spec == x.spec and str(x.spec) == "bfloat16[3]"
    for value in (given, given.view(BFLOAT16.dtype), [1.5, -2.0, float("inf")]):
        assert function(value).view(ml_dtypes.bfloat16).tolist() == given.tolist()
    assert function(given)["bfloat16"].tolist() == [0x3FC0, 0xC000, 0x7F80]
    assert x.assign(given).value.tobytes() == given.tobytes()
    for wrong in (given.astype("float16"), given.view("uint16"), given.astype("float32")):
        with pytest.raises(InputError, match=r"x expects bfloat16\[3\]"):
            function(wrong)


@pytest.mark.parametrize("dtype", PEERS)
def test_a_gradient_passes_through_rounding(dtype):
    x = cg.Var((4,), "float32").assign(np.array([1, 2, 3, 4], "float32"))
    held = x.astype(dtype)
    y = cg.sum(held.T.astype("float32") * 3.5 + held.reshape(2, 2).ravel().astype("float32") ** 2)
    for wanted in (x, held):
        assert cg.gradient(y, [wanted])[0].eval().tolist() == [5.5, 7.5, 9.5, 11.5]


@pytest.mark.parametrize("dtype", PEERS)
def test_a_saved_function_takes_and_gives_them(dtype, tmp_path):
    x = cg.Var((5,), dtype, "x")
    function, given = cg.compile((x + 1).astype(dtype), [x]), np.arange(5).astype(PEERS[dtype])
    function.save(tmp_path / "saved")
    loaded = cg.load(tmp_path / "saved", in_memory=True)
    assert loaded(given).tobytes() == function(given).tobytes() == (given + PEERS[dtype].type(1)).tobytes()


@pytest.mark.parametrize("dtype", PEERS)
def test_arrays_without_axes_and_strided_arrays_convert_as_the_peer_says(dtype):
    x = np.array([[-np.nan, np.inf, 3e38], [1.5, -0.0, 1e-45]], "float32")
    with np.errstate(all="ignore"):
        want = x.astype(PEERS[dtype])
    for part in (np.s_[0, 0], np.s_[1, 0], np.s_[::-1, ::2], np.s_[:0], np.s_[:, 1]):
        with np.errstate(over="ignore"):  # as NumPy warns for its own float16
            stored = convert(np.asarray(x[part]), BY_NAME[dtype].dtype)
        peer = np.asarray(want[part])
        same = (bits(stored) == bits(peer)) | np.isnan(peer.astype("float32"))
        assert stored.shape == peer.shape and same.all()
        np.testing.assert_array_equal(convert(stored, np.dtype("float32")), peer.astype("float32"))


def test_conversion_of_an_array_leaves_it_alone():
    x = np.array([[1.0, 2.0], [3.0, 4.0]], "float32").T
    held = convert(x, BFLOAT16.dtype)
    assert held.shape == (2, 2) and convert(held, x.dtype).tolist() == x.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert convert(x, x.dtype) is x


@pytest.mark.parametrize("wrap", [lambda op: Rerun(op), lambda op: InPlace(op, 1, 0)], ids=["again", "in place"])
@pytest.mark.parametrize("dtype", PEERS)
def test_ops_that_are_run_again_or_in_place_take_them(dtype, wrap):
    """A budget runs a conversion twice, and an update edge writes it into a Var."""
    x = cg.Var((3,), dtype, "x")
    op = x.astype("float32").op
    assert apply(wrap(op), x).dtype == np.float32
    with pytest.raises(DTypeError, match="does not compute in"):
        apply(cg.sort(cg.Var((3,), name="y")).op, x)


FUNCTIONS = [
    cg.round, cg.isfinite, cg.isinf, cg.isnan, cg.sign, cg.floor, np.reciprocal, np.nan_to_num, np.nansum, np.nanmean,
    np.nanmax, np.nancumsum, np.nancumprod, np.nanvar, np.cov, np.unwrap, np.signbit, np.sinc, np.modf, np.frexp,
    lambda x: np.linspace(x, 2, 3), lambda x: np.histogram(x, 3, (-3, 3))[0], lambda x: cg.ones_like(x) + x,
    lambda x: cg.zeros_like(x) + x, lambda x: cg.full(x.shape, 1.5, x.dtype) + x, lambda x: np.heaviside(x, x),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_of_a_storage_dtype_is_that_of_float32(function, dtype):
    value = np.array([[1.25, -2.5, 0.375], [0.5, -0.0, 3.5]], "float32")
    value[1, 1] = np.nan if "nan" in str(function) or function is cg.isfinite else value[1, 1]
    x = cg.Const(value, dtype)
    got, want = (cg.compile(results_of(function(y)))() for y in (x, x.astype("float32")))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype


def results_of(x):
    """Return one result or several as a list."""
    return list(x) if isinstance(x, tuple | list) else [x]


@pytest.mark.parametrize("dtype", PEERS)
def test_sizes_and_limits_are_the_peers(dtype):
    row, given = BY_NAME[dtype], ALL[dtype].view(PEERS[dtype])
    with np.errstate(invalid="ignore"):
        numbers = given.astype("float32")
    finite = np.isfinite(numbers)
    assert row.largest == numbers[finite].max() and (row.bits, row.unsigned) == (
        8 * given.itemsize,
        f"u{given.itemsize}",
    )
    assert row.first_special == np.flatnonzero(~finite)[0] and numbers[row.bias << row.mantissa] == 1
    assert row.has_infinity == np.isinf(numbers).any()
    assert row.has_negative_zero == (np.signbit(numbers) & (numbers == 0)).any()
