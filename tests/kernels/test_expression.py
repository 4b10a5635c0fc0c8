"""Scalar programs: what operators record, equal instructions once, conversions, constants that keep every bit."""

import math
import operator

import pytest

from cgraph.kernels.expression import BINARY, COMPARE, UNARY, Trace, constant_of, operands_of, part_of, renumber


def values(*dtypes):
    m = Trace()
    return m, *(m.load(i, dtype) for i, dtype in enumerate(dtypes))


LOADS = (("load", "f4", 0), ("load", "f4", 1))


@pytest.mark.parametrize(
    ("sign", "name"),
    [("add", "add"), ("sub", "sub"), ("mul", "mul"), ("truediv", "div"), ("and_", "and"), ("or_", "or"), ("xor", "xor")]
    + [(x, x) for x in ("lt", "le", "gt", "ge")],
)
def test_operators_record_their_operands_in_order(sign, name):
    m, x, y = values("f4", "f4")
    f = getattr(operator, sign)
    dtype = "b1" if name in COMPARE else "f4"
    assert m.program(f(x, y)) == (*LOADS, (name, dtype, 0, 1))
    assert m.program(f(y, x)) == (*LOADS, (name, dtype, 1, 0))


@pytest.mark.parametrize(("sign", "name"), [("add", "add"), ("sub", "sub"), ("mul", "mul"), ("truediv", "div")])
def test_numbers_take_the_other_sides_dtype_on_either_side(sign, name):
    f, number = getattr(operator, sign), ("const", "f4", (2.0).hex())
    m, x = values("f4")
    assert m.program(f(x, 2)) == (LOADS[0], number, (name, "f4", 0, 1))
    m, x = values("f4")
    assert m.program(f(2, x)) == (LOADS[0], number, (name, "f4", 1, 0))


def test_unary_operators_and_methods():
    m, x = values("i4")
    assert m.program(-x)[-1] == ("neg", "i4", 0) and m.program(~x)[-1] == ("not", "i4", 0)
    assert m.program(m.exp(x))[-1] == ("exp", "i4", 0)
    assert m.program(m.eq(x, 3))[-1][:2] == ("eq", "b1") and m.program(m.is_nan(x))[-1] == ("is_nan", "b1", 0)
    assert m.program(m.atan2(x, 3))[-1][:3] == ("atan2", "i4", 0)
    assert not UNARY & BINARY and not (UNARY | BINARY) & COMPARE


def test_a_primitive_that_there_is_not_is_named():
    with pytest.raises(AttributeError, match="no primitive is called 'expo'. Use one of UNARY"):
        Trace().expo(1)


def test_equal_instructions_are_written_once_and_others_are_not():
    m, x, y = values("f4", "f4")
    assert (x + y).position == (x + y).position != (y + x).position
    assert m.const(1, "f4").position == m.const(1.0, "f4").position != m.const(1, "f8").position
    assert m.load(0, "f4").position == x.position


def test_a_program_is_what_its_result_needs_in_order():
    m, x, y, z = values("f4", "f4", "f4")
    m.exp(y)
    total = x - z
    m.log(total)
    assert m.program(total) == (("load", "f4", 0), ("load", "f4", 2), ("sub", "f4", 0, 1))
    assert m.program(y) == (("load", "f4", 1),)
    assert m.program(total * total)[-1] == ("mul", "f4", 2, 2)


@pytest.mark.parametrize("value", [0.1, -0.0, math.inf, -math.inf, 5e-324, 1e300, 1 / 3])
def test_constants_keep_every_bit(value):
    m = Trace()
    (instruction,) = m.program(m.const(value, "f8"))
    got = constant_of(instruction)
    assert (got, math.copysign(1, got)) == (value, math.copysign(1, value))


def test_constants_of_integers_are_whole_and_a_nan_is_equal_to_itself():
    m = Trace()
    assert constant_of(m.program(m.const(2**64 - 1, "u8"))[0]) == 2**64 - 1
    assert m.program(m.const(2.9, "i4")) == (("const", "i4", "2"),) and m.program(m.const(True, "b1"))[0][2] == "1"
    assert m.program(m.const(math.nan, "f4")) == m.program(m.const(-math.nan, "f4"))
    assert math.isnan(constant_of(m.program(m.const(math.nan, "f4"))[0]))


def test_a_choice_takes_its_dtype_from_either_side():
    for first, second in ((1, None), (None, 1)):
        m, x = values("f8")
        chosen = m.where(x < 0, x if first is None else first, x if second is None else second)
        program = m.program(chosen)
        assert chosen.dtype == "f8" and program[-1][:2] == ("select", "f8")
        condition, yes, no = (program[i] for i in program[-1][2:])
        assert condition[0] == "lt" and (yes[0], no[0]) == (("load", "const") if first is None else ("const", "load"))


def test_conversions_are_recorded_only_to_another_dtype():
    m, x = values("f4")
    assert m.cast(x, "f4") is x
    assert m.program(m.cast(x, "i8")) == (LOADS[0], ("cast", "i8", 0))
    assert m.program(m.bits(x, "u4")) == (LOADS[0], ("bits", "u4", 0))


def test_a_complex_number_is_its_parts_until_it_is_a_result():
    m, z = values("c8")
    assert (z.re.dtype, z.im.dtype, z.dtype) == ("f4", "f4", "c8")
    assert m.program(z) == (("load", "c8", 0), ("real", "f4", 0), ("imag", "f4", 0), ("pair", "c8", 1, 2))
    assert m.program(z.im) == (("load", "c8", 0), ("imag", "f4", 0))
    assert m.program(m.const(1 - 2j, "c16"))[-1] == ("pair", "c16", 0, 1)
    assert m.program(z - 1j)[-1][0] == "pair"


def test_conversions_of_complex_numbers():
    m, z, x = values("c8", "f4")
    wide = m.program(m.cast(z, "c16"))
    assert [row[0] for row in wide] == ["load", "real", "imag", "cast", "cast", "pair"] and wide[-1][1] == "c16"
    assert m.program(m.cast(z, "f4")) == m.program(z.re)  # the imaginary part is dropped
    assert m.program(m.cast(z, "i4"))[-1] == ("cast", "i4", 1)
    flag = m.program(m.cast(z, "b1"))
    assert [row[0] for row in flag].count("ne") == 2 and flag[-1][:2] == ("or", "b1")
    pair = m.program(m.cast(x, "c16"))
    assert pair[-1][1] == "c16" and pair[pair[-1][2]] == ("cast", "f8", 0) and pair[pair[-1][3]][0] == "cast"


def test_a_choice_between_complex_numbers_is_made_for_both_parts():
    m, z, x = values("c8", "f4")
    program = m.program(m.where(x < 0, z, 1j))
    re, im = (program[i] for i in program[-1][2:])
    assert re[0] == im[0] == "select" and re[2] == im[2]
    assert [program[i][0] for i in (re[3], im[3])] == ["real", "imag"]
    assert [constant_of(program[i]) for i in (re[4], im[4])] == [0, 1]


def test_positions_are_read_and_renumbered_but_not_those_of_operands():
    assert operands_of(("load", "f4", 7)) == operands_of(("const", "f4", "0x1p0")) == ()
    assert operands_of(("add", "f4", 3, 5)) == (3, 5)
    assert renumber(("add", "f4", 3, 5), {3: 0, 5: 1}) == ("add", "f4", 0, 1)
    assert renumber(("load", "f4", 3), {3: 0}) == ("load", "f4", 3)
    assert (part_of("c8"), part_of("c16")) == ("f4", "f8")
