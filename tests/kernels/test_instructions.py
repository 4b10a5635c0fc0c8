"""Instructions of a target by operation: which it has, what they compute, what stands for one that is absent."""

import numpy as np
import pytest

from cgraph.kernels.isa.architectures import architecture_of, instruction_of
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.build import KERNEL_TYPE, Builder
from cgraph.kernels.llvm.instructions import as_bits, call_instruction, call_void, has_instruction
from cgraph.kernels.target import host_target
from tests.support.emitted import applied, every_target, run_emitted

HOST = host_target()


def builder(target=HOST):
    module = ir.Module("m")
    return Builder(module, ir.Function(module, KERNEL_TYPE, "f"), Kernel("tests.own"), target)


@every_target
def test_a_target_has_an_instruction_for_its_lanes_alone(target):
    k = builder(target)
    for operation, lanes in architecture_of(target).instructions:
        assert has_instruction(k, operation, lanes)
        assert instruction_of(target, operation, lanes).name in str(architecture_of(target).instructions)
    assert not has_instruction(k, "pair dot", 3) and not has_instruction(k, "no such operation")


@pytest.mark.skipif(instruction_of(HOST, "pair dot", 4) is None, reason="this processor's family has no pair dot")
@every_target
def test_two_neighbouring_products_of_16_bits_are_added(target):
    lanes = target.lanes
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-(2**15), 2**15, (lanes, 2)).astype("i2") for _ in range(2))
    out = np.zeros(lanes, "i4")

    def write(k, a, b, place):
        place.store(call_instruction(k, "pair dot", lanes, a.load(0, 2 * lanes), b.load(0, 2 * lanes)))

    run_emitted(write, target, x, y, out)
    np.testing.assert_array_equal(out, (x.astype("i4") * y).sum(1))


def test_an_instruction_that_is_absent_is_named():
    with pytest.raises(AssertionError, match="no such operation"):
        call_instruction(builder(), "no such operation", 4)


@every_target
def test_an_instruction_without_a_result_is_left_out_where_there_is_none(target):
    out = np.zeros(1)

    def write(k, place):
        call_void(k, "pause")
        call_void(k, "no such operation")
        place.store(1.0)

    run_emitted(write, target, out)
    assert out[0] == 1
    k = builder(target)
    call_void(k, "no such operation")
    assert not k.b.block.lines


@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "f4"])
def test_bits_are_read_as_elements_of_another_size(dtype):
    x = np.arange(8) * 0x0102030405
    lanes = 64 // np.dtype(dtype).itemsize
    out = np.zeros(lanes, dtype)
    run_emitted(lambda k, a, place: place.store(k.wrap(as_bits(k, a.load(0, 8), dtype), dtype, lanes)), HOST, x, out)
    np.testing.assert_array_equal(out.view("u1"), x.view("u1"))


def test_operands_beyond_those_of_the_instruction_are_refused():
    row = next(((op, n) for (op, n), row in architecture_of(HOST).instructions.items() if row.result), None)
    if row is None:
        pytest.skip("this processor's family has no instruction with a result")
    k = builder()
    x = k.const(0, "i4", max(row[1], 4))
    with pytest.raises(ValueError, match="zip"):
        call_instruction(k, *row, *[x] * 7)


@pytest.mark.skipif(instruction_of(HOST, "nearest", 4) is None, reason="this processor's family rounds by arithmetic")
@every_target
def test_the_nearest_integer_has_halves_to_even(target):
    x = np.resize(np.array([0.5, 1.5, -0.5, -2.5, 7.49], "f4"), target.lanes * 2)
    got = applied(
        lambda k, a: call_instruction(k, "nearest", a.lanes, a), target, x, dtypes=("i4",), lanes=target.lanes
    )
    np.testing.assert_array_equal(got, np.rint(x))
