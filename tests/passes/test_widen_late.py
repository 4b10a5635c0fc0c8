"""Values of storage dtypes are moved before they are widened: which moves, which dtypes, and what stays."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.ir.traverse import post_order
from cgraph.ops.arithmetic import Cast
from cgraph.passes.widen_late import is_widening, widen_late
from tests.support.rewrites import assert_left

HALF = cg.Var(np.arange(12, dtype="float16").reshape(3, 4))
WIDE = HALF.astype("float32")
AT = cg.Const([2, 0])
MOVES = {
    "take": lambda x: cg.take(x, AT, 0),
    "reshape": lambda x: cg.reshape(x, (2, 6)),
    "slice": lambda x: x[1:, ::2],
    "several": lambda x: cg.reshape(cg.take(x, AT, 1)[:2], (4,)),
}


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_moves_come_before_the_widening(name, dtype):
    x = cg.Var((3, 4)).assign(np.arange(12.0).reshape(3, 4)).astype(dtype)
    y = MOVES[name](x.astype("float32"))
    (got,) = widen_late((y,))
    assert is_widening(got) and all(n.dtype != "float32" for n in post_order([got]) if n.operands and n is not got
                                    and not isinstance(n.op, Cast))  # fmt: skip
    assert len(post_order([got])) == len(post_order([y]))
    np.testing.assert_array_equal(got.eval(), y.eval())
    assert_left(widen_late, got)


def test_positions_that_are_widened_are_not_the_value():
    x = cg.Var((3,), "int64")
    assert_left(widen_late, cg.take(cg.Var((5,)), x, 0), WIDE)


@pytest.mark.parametrize("y", [
    cg.transpose(WIDE), cg.broadcast_to(WIDE, (2, 3, 4)), cg.exp(WIDE), HALF.astype("float64")[1:],
    cg.Var((3, 4), "int32").astype("float32")[1:], cg.Var((3, 4), "float32")[1:].astype("float16"),
], ids=["transpose", "broadcast", "exp", "to float64", "integers", "narrowing"])  # fmt: skip
def test_other_moves_and_casts_are_left(y):
    assert_left(widen_late, y)


def test_what_widens():
    assert is_widening(WIDE) and not is_widening(HALF) and not is_widening(WIDE[1:])
    assert not is_widening(HALF.astype("float64")) and not is_widening(cg.Var((1,), "int8").astype("float32"))
