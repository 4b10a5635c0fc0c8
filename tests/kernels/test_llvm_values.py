"""Values and addresses in kernels: operators of both sides, memory of booleans and storage dtypes, variables."""

import operator

import numpy as np
import pytest

from cgraph.dtypes.storage import BFLOAT16
from cgraph.kernels.llvm.values import alignment_of, nbytes_of, scalar_type, vector_type
from cgraph.kernels.target import host_target
from tests.support.emitted import applied, every_target, run_emitted

HOST = host_target()


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv"])
def test_operators_keep_the_order_of_their_sides(name):
    f, x = getattr(operator, name), np.array([1.0, 2, 4, 8, 16, -1, 0.5, 3])
    y = x[::-1].copy()
    got = applied(lambda k, a, b: [f(a, b), f(a, 3.0), f(3.0, a)], HOST, x, y, dtypes=("f8",) * 3)
    np.testing.assert_array_equal(got, [f(x, y), f(x, 3.0), f(3.0, x)])


@pytest.mark.parametrize("name", ["floordiv", "mod", "and_", "or_", "xor", "lshift", "rshift"])
def test_operators_of_integers(name):
    f, x, y = getattr(operator, name), np.arange(8) * 37, np.arange(1, 9)
    got = applied(lambda k, a, b: [f(a, b), f(a, 5)], HOST, x, y, dtypes=("i8",) * 2)
    np.testing.assert_array_equal(got, [f(x, y), f(x, 5)])
    np.testing.assert_array_equal(applied(lambda k, a: ~a, HOST, x), ~x)


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_comparisons_keep_the_order_of_their_sides(name):
    f, x = getattr(operator, name), np.array([0, 1, 2, 3, 4, 5, 6, 7])
    y = np.array([0, 2, 1, 3, 9, -5, 6, 8])
    np.testing.assert_array_equal(applied(lambda k, a, b: f(a, b), HOST, x, y, dtypes=("?",)), f(x, y))


@pytest.mark.parametrize("lanes", [0, 8])
def test_any_byte_but_zero_is_true_and_true_is_stored_as_one(lanes):
    x = np.array([0, 1, 2, 255, 0, 128, 0, 7], "u1")
    out = np.full(8, 9, "u1")

    def write(k, source, place):
        with k.loop(0, 8, max(lanes, 1)) as i:
            place.as_dtype("b1").store(source.as_dtype("b1").load(i, lanes), i)

    run_emitted(write, HOST, x, out)
    assert out.tolist() == [0, 1, 1, 1, 0, 1, 0, 1]


@every_target
def test_storage_dtypes_are_widened_by_loads_and_rounded_by_stores(target):
    x = np.array([1, 1 + 2.0**-9, 1 + 2.0**-8, 1 + 3 * 2.0**-8, -2.5, 3e38, np.inf, 0], "f4")
    out, back = np.zeros(8, "u2"), np.zeros(8, "f4")

    def write(k, source, bits, place):
        short = bits.as_dtype(BFLOAT16.code)
        short.store(source.load(0, 8))
        place.store(short.load(0, 8))

    run_emitted(write, target, x, out, back)
    whole = (x.view("u4").astype("u8") + 0x7FFF + ((x.view("u4") >> 16) & 1)) >> 16  # to nearest, ties to even
    assert out.tolist() == whole.tolist()
    np.testing.assert_array_equal(back, (out.astype("u4") << 16).view("f4"))


def test_addresses_move_by_elements_or_by_bytes():
    x, out = np.arange(8, dtype="i4"), np.zeros(4, "i4")

    def write(k, source, place):
        place.store((source + 3).load())
        place.store((source + k.const(2, "i8")).load(1), 1)
        place.store(source.plus_bytes(20).load(), 2)
        place.store((source + 4).load(-1) + source.as_dtype("i4").load(7), 3)

    run_emitted(write, HOST, x, out)
    assert out.tolist() == [3, 3, 5, 10]


def test_stores_past_the_cache_have_the_same_values_and_say_so():
    x, memory = np.arange(16, dtype="f4"), np.zeros(48, "f4")
    start = -memory.ctypes.data // 4 % 16
    out, marks = memory[start : start + 16], []

    def write(k, source, place):
        place.store(source.load(0, 16), past_cache=True)
        marks.append("!nontemporal" in str(k.function))

    run_emitted(write, HOST, x, out)
    np.testing.assert_array_equal(out, x)
    assert marks == [True]


def test_a_variable_is_what_was_written_last():
    out = np.zeros(2)

    def write(k, place):
        s = k.slot(k.const(1.0, "f8"))
        before = s.value
        s.value = s.value + 4.0
        place.store(before)
        place.store(s.value, 1)

    run_emitted(write, HOST, out)
    assert out.tolist() == [1, 5]


@pytest.mark.parametrize(
    ("dtype", "text", "nbytes", "alignment"),
    [
        ("f4", "float", 4, 4),
        ("f8", "double", 8, 8),
        ("b1", "i1", 1, 1),
        ("u2", "i16", 2, 2),
        ("c8", "i64", 8, 4),
        ("c16", "i128", 16, 8),
    ],
)
def test_types_sizes_and_alignments(dtype, text, nbytes, alignment):
    assert str(scalar_type(dtype)) == text == str(vector_type(dtype, 0))
    assert str(vector_type(dtype, 4)) == f"<4 x {text}>"
    assert (nbytes_of(dtype), alignment_of(dtype)) == (nbytes, alignment)
