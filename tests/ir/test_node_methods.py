"""Methods that are declared for type checkers: each is there, takes the parameters declared, and is the array's."""

import ast
from inspect import getsource

import numpy as np
import pytest

import cgraph as cg
from cgraph.ir import node_methods
from cgraph.ir.node_methods import NodeMethods
from tests.support.tolerance import assert_close

X = np.array([[3.0, -1.0, 2.0], [0.5, 4.0, -2.5]])
CALLS = {  # by position and by every name that is declared
    "all": [(), {"axis": 1, "keepdims": True}], "any": [(0,), {"keepdims": True}],
    "argmax": [(), {"axis": 1, "keepdims": True}], "argmin": [(0,), {"axis": 1}],
    "argpartition": [(1,), {"kth": 0, "axis": 1}], "argsort": [(), (0,), {"axis": None}],
    "astype": [("float32",), {"dtype": "int64", "casting": "unsafe"}],
    "clip": [(-1, 2), {"min": 0, "max": 3}, {"max": 0}],
    "compress": [([True, False],), {"condition": [False, True, True], "axis": 1}], "conj": [()], "conjugate": [()],
    "copy": [()], "cumprod": [(1,), {"axis": 0, "dtype": "float32"}], "cumsum": [(), {"axis": 1, "dtype": "float32"}],
    "diagonal": [(1,), {"offset": -1, "axis1": 1, "axis2": 0}], "dot": [(X.T,)], "flatten": [(), {"order": "F"}],
    "max": [(0,), {"axis": (0, 1), "keepdims": True, "initial": 3.5}], "mean": [(1,), {"axis": 0, "keepdims": True}],
    "min": [(0,), {"axis": 1, "where": X < 2, "initial": 9.0}], "prod": [(), {"axis": 0, "dtype": "float32"}],
    "ravel": [(), {"order": "F"}], "repeat": [(2,), {"repeats": 3, "axis": 1}], "reshape": [(3, 2), ((6,),)],
    "round": [(), (1,), {"decimals": 0}], "searchsorted": [], "squeeze": [(), {"axis": ()}],
    "std": [(), {"axis": 1, "ddof": 1, "keepdims": True}],
    "sum": [(0,), {"axis": 1, "dtype": "float32", "keepdims": True}],
    "swapaxes": [(0, 1), (-1, 0)], "take": [([1, 0], 1), {"indices": 2, "axis": 1}],
    "trace": [(1,), {"offset": 0, "axis1": 1, "axis2": 0}], "transpose": [(), (1, 0)],
    "var": [(0,), {"axis": 1, "ddof": 0.5}], "view": [("int64",), {"dtype": "uint64"}],
    "choose": [], "eval": [], "item": [],
}  # fmt: skip


def declared():
    """The methods and attributes in the source."""
    tree = ast.parse(getsource(node_methods))
    (block,) = [x for c in ast.walk(tree) if isinstance(c, ast.ClassDef) for x in c.body if isinstance(x, ast.If)]
    return {x.name if isinstance(x, ast.FunctionDef) else x.target.id for x in block.body}


def test_every_declaration_has_a_call_here_and_is_an_attribute_of_a_node():
    attributes = {"at", "imag", "real", "mT", "itemsize"}
    assert declared() == {*CALLS, *attributes}
    node = cg.Var(X)
    assert all(hasattr(node, name) for name in declared()) and declared() - attributes <= set(dir(node))
    assert not any(name in vars(NodeMethods) for name in declared())  # for type checkers alone


@pytest.mark.parametrize("name", CALLS)
def test_a_method_is_the_arrays(name):
    for call in CALLS[name]:
        args, named = ((), call) if isinstance(call, dict) else (call, {})
        want = getattr(X, name)(*args, **named)
        got = getattr(cg.Var(X), name)(*args, **named).eval()
        assert got.shape == want.shape and got.dtype == want.dtype, (name, call)
        assert_close(got, want)


def test_methods_of_rows_numbers_and_values():
    row, choice = cg.Var(np.array([1.0, 2.0, 4.0])), cg.Var(np.array([1, 0, 1]))
    assert row.searchsorted(2.0, side="right").eval() == 2 and row.searchsorted([0.5, 9]).eval().tolist() == [0, 3]
    assert choice.choose([row, row * 10]).eval().tolist() == [10, 2, 40]
    assert cg.Var(np.array([[7.0]])).item() == 7 and isinstance(row.eval(), np.ndarray)
    assert row.itemsize == 8 and row.real is row and row.imag.eval().tolist() == [0, 0, 0]
    assert row.at[1].set(9.0).eval().tolist() == [1, 9, 4] and cg.Var(X).mT.eval().tolist() == X.T.tolist()
