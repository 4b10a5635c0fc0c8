"""The passes of one target, in order: which options run which, and what is left alone."""

import numpy as np

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.ir.graph import apply
from cgraph.ir.traverse import post_order
from cgraph.kernels.conv8.calls import Result
from cgraph.kernels.machines import machine_named
from cgraph.kernels.target import host_target
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pipeline import lower_graph
from cgraph.ops.fixed import KnownFixedProduct
from cgraph.ops.leaf import ConstOp
from cgraph.ops.linear import Matmul
from cgraph.ops.physical.integer import IntegerMatmul, PackedIntegerMatmul
from cgraph.ops.physical.matmul import PackedMatmul
from cgraph.ops.physical.pairs import PairedMatmul
from cgraph.record import replace
from tests.support.emulated import with_pairs
from tests.support.tolerance import assert_close

RNG = np.random.default_rng(0)
X = cg.Var((8, 200), name="x")
W = cg.Const(RNG.standard_normal((200, 200), np.float32))
BYTES = cg.Var((3, 5), "uint8", "bytes")


def kinds(outputs, target=None, **options) -> set:
    nodes = post_order(lower_graph(tuple(outputs), target or host_target(), LoweringOptions(**options)))
    return {type(n.op) for n in nodes if n.operands}


def byte_product():
    constants = np.ones((5, 7), "i1"), np.zeros(7, "i4"), np.array([[1 << 30] * 7, [-11] * 7], "i4")
    return apply(IntegerMatmul(3, Result(fixed="twice")), BYTES, *map(cg.Const, constants))


def quantised_product():
    floats = cg.dequantize(BYTES, np.float32(0.1), 3) @ cg.dequantize(np.ones((5, 7), "i1"), np.float32(0.1))
    return cg.quantize(floats, np.float32(0.5), 9)


def test_without_passes_products_stay_as_they_are_written():
    assert kinds([X @ W], passes=False) == {Matmul}
    assert kinds([X @ W], passes=False, pairs=True, storage_dtype=np.dtype("float16")) == {Matmul}
    assert kinds([X @ W]) == {PackedMatmul}
    assert kinds([X @ W], with_pairs(host_target()), pairs=True) == {PairedMatmul}


def test_weights_are_stored_in_fewer_bytes_before_they_are_packed():
    (node,) = lower_graph((X @ W,), host_target(), LoweringOptions(storage_dtype=np.dtype("float16")))
    assert isinstance(node.op, PackedMatmul) and node.operands[1].dtype == np.float16


def test_bytes_are_computed_on_bytes_with_passes_alone_and_never_for_ptx():
    ptx = replace(host_target(), code="ptx")
    assert kinds([byte_product()]) == {PackedIntegerMatmul}
    assert PackedIntegerMatmul in kinds([quantised_product()])
    for target, passes in ((host_target(), False), (ptx, True), (ptx, False)):
        for product in (byte_product(), quantised_product()):
            assert not kinds([product], target, passes=passes) & {IntegerMatmul, PackedIntegerMatmul}


def test_constants_at_odd_addresses_are_copied_with_and_without_passes_and_stored_as_the_options_say():
    odd = np.frombuffer(b"." + bytes(8 * 200 * 200), np.float64, offset=1).reshape(200, 200)
    y = cg.Var(odd.shape, "float64", "y") + cg.Const(odd, copy=False)
    for passes in (False, True):
        (node,) = lower_graph((y,), host_target(), LoweringOptions(passes, keep=lambda x: x + 1))
        (array,) = (n.op.array for n in post_order([node]) if isinstance(n.op, ConstOp))
        assert array.flags.aligned and np.unique(array).tolist() == [1]


def test_outputs_keep_their_order_and_values():
    outputs = (X @ W, cg.tanh(X), cg.sum(X @ W, 1))
    values = {X: RNG.standard_normal(X.shape, np.float32)}
    lowered = lower_graph(outputs, host_target(), LoweringOptions())
    assert [x.spec for x in lowered] == [x.spec for x in outputs]
    for got, want in zip(evaluate(lowered, values), evaluate(outputs, values)):
        assert_close(got, want)


def test_known_factors_are_part_of_the_code_of_small_processors_and_of_passes():
    x = cg.Var((5,), "int32", "x")
    product = cg.fixed_product(x, np.int32(3 << 29), np.int32(-3))
    small = machine_named("cortex-m55").target
    assert small.is_small and not host_target().is_small
    assert kinds([product], small) == {KnownFixedProduct}
    assert KnownFixedProduct not in kinds([product]) | kinds([product], small, passes=False)
