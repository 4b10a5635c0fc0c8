"""Lowered networks whose axes and sides differ: what they mean, each step alone, and the bits of bands of rows."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.ir.graph import Node
from cgraph.ir.spec import Bundle
from cgraph.ir.traverse import post_order
from cgraph.ops.leaf import ConstOp, VarOp
from cgraph.ops.physical.form import Form
from tests.support.kernels import ORDERS
from tests.support.lowered import LOWERED, ROUNDED, lowered
from tests.support.ops import contiguous, kernel_result, work_of
from tests.support.tolerance import assert_close

EXACT = [name for name in LOWERED if name not in ROUNDED]


def in_channels(node: Node, x: np.ndarray) -> np.ndarray:
    """Bytes of channels: nobody reads those of lanes without one."""
    form = getattr(node.op, "form", getattr(node.op, "result", None))
    return form.plain(x) if isinstance(form, Form) and x.shape == form.shape and x.dtype == np.uint8 else x


@pytest.mark.parametrize("name", EXACT)
def test_a_lowered_network_means_what_it_did_before(name):
    net = lowered(name)
    for got, want in zip(evaluate(net.roots, net.values), evaluate(net.outputs, net.values), strict=True):
        assert_close(got, want, 20)


@pytest.mark.parametrize("name", LOWERED)
def test_a_step_computes_its_meaning_in_any_order_and_over_bytes_that_it_may_take(name):
    net, taken = lowered(name), 0
    nodes = [x for x in post_order(net.roots) if not isinstance(x.spec, Bundle)]
    known = dict(zip(nodes, evaluate(nodes, net.values), strict=True))
    for node in nodes:
        if isinstance(node.op, ConstOp | VarOp):
            continue
        xs = [contiguous(known[x]) for x in node.operands]
        (want,), *others = (kernel_result(node, xs, order, target=net.target) for order in ORDERS)
        assert_close(*(in_channels(node, x) for x in (want, known[node])), 20)
        assert all(other.tobytes() == want.tobytes() for (other,) in others), node
        for i in work_of(node, net.target).overwrites:
            place = contiguous(known[node.operands[i]])
            out = place.reshape(-1).view(np.uint8).view(node.dtype).reshape(node.shape)
            (shared,) = kernel_result(node, [*xs[:i], place, *xs[i + 1 :]], "reverse", out, net.target)
            assert shared.tobytes() == want.tobytes(), (node, i)
            taken += 1
    assert taken


@pytest.mark.parametrize("name", ["floats", "volumes", "uint8", "int8"])
def test_bands_of_rows_have_the_bits_of_whole_images(name):
    net = lowered(name)
    inputs, values = list(net.values), list(net.values.values())
    whole, bands = (
        cg.compile(list(net.outputs), inputs, engine=CpuEngine("host", 1, poison=True), bands=n)(*values)
        for n in (None, 4)
    )
    for got, want, meant in zip(bands, whole, evaluate(net.outputs, net.values), strict=True):
        np.testing.assert_array_equal(got, want)
        assert_close(want, meant, 20)
