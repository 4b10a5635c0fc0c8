"""Ops by name for importers: every op of a user is there, at the time of use, and another name is refused."""

import numpy as np
import pytest

import cgraph
from cgraph.engine.reference import evaluate
from cgraph.errors import FormatError
from cgraph.formats.names import Names, cg
from cgraph.ir.graph import OPS
from cgraph.ops.leaf import Const


def test_a_name_is_the_function_that_users_call():
    for name in ("softmax", "add", "conv2d", "where", "random_key"):
        assert getattr(cg, name) is OPS[name] is getattr(cgraph, name)
    x = Const(np.array([[0.0, np.log(3.0)]]))
    np.testing.assert_array_equal(evaluate([cg.where(x > 0, 1, 2)], {})[0], [[2, 1]])


def test_a_name_without_an_op_is_refused():
    for name in ("sotfmax", "Softmax", "", "__wrapped__"):
        with pytest.raises(FormatError, match=f"^the op {name} does not exist$"):
            getattr(cg, name)


def test_an_op_of_later_is_there(monkeypatch):
    names = Names()
    with pytest.raises(FormatError):
        _ = names.an_op_of_later
    monkeypatch.setitem(OPS, "an_op_of_later", len)
    assert names.an_op_of_later([1, 2]) == 2
