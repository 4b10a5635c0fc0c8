"""Functions of one number: a pointwise op with constants in the places of other operands."""

import numpy as np
import pytest

from cgraph.kernels.expression import constant_of
from cgraph.ops.arithmetic import Multiply, Subtract
from cgraph.ops.fused import FusedPointwise
from cgraph.ops.physical.element_function import ElementFunction

SQUARE_LESS = FusedPointwise(2, ((Multiply(), (0, 0)), (Subtract(), (2, 1))))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_have_their_places_and_the_arrays_dtype(dtype):
    x = np.linspace(-2, 2, 7).astype(dtype)
    y = ElementFunction(SQUARE_LESS, (None, 0.1)).meaning(x)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, x * x - np.asarray(0.1, dtype))
    np.testing.assert_array_equal(ElementFunction(Subtract(), (3.0, None)).meaning(x), 3 - x)


def test_a_program_has_one_operand_and_constants():
    program = ElementFunction(SQUARE_LESS, (None, 0.5)).program("f4")
    assert [name for name, *_ in program] == ["load", "const", "mul", "sub"]
    assert program[0] == ("load", "f4", 0) and constant_of(program[1]) == 0.5
    assert program[2:] == (("mul", "f4", 0, 0), ("sub", "f4", 2, 1))


def test_the_array_may_be_any_operand():
    program = ElementFunction(Subtract(), (3.0, None)).program("f8")
    (load,) = (i for i, instruction in enumerate(program) if instruction[0] == "load")
    (const,) = (i for i, instruction in enumerate(program) if instruction[0] == "const")
    assert program[-1] == ("sub", "f8", const, load)
