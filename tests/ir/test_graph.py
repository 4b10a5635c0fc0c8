"""Ops and nodes: which are one, what operators call in which order, and what errors say of them."""

import operator
import pickle
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import (
    ArgumentError,
    CgraphError,
    DTypeError,
    GraphError,
    NoGradientError,
    NoKernelError,
    NoMeaningError,
)
from cgraph.ir.graph import (
    Op,
    apply,
    locate,
    located_message,
    locates_errors,
    next_serial,
    snake_case,
    with_operands,
)
from cgraph.ir.origin import Origin, origin_at
from cgraph.ir.rewrite import with_new_operands
from cgraph.ir.spec import Spec
from cgraph.ir.table import number_of

X, Y = cg.Var((3, 4), name="x"), cg.Var((3, 4), name="y")


class Twice(Op):
    """An op that no other test has; it counts how often a spec is inferred."""

    scale: int = 2

    def infer(self, *specs):
        INFERRED.append(specs)
        return specs[0]


class Tossed(Twice):
    pure = False


INFERRED: list[tuple] = []


# -- which nodes are one -----------------------------------------------------------------------------------------------


def test_equal_ops_on_the_same_operands_are_one_node_and_others_are_not():
    node = apply(Twice(3), X)
    assert apply(Twice(3), X) is node
    assert apply(Twice(2), X) is not node and apply(Twice(3), Y) is not node
    assert apply(Twice(3), X, Y) is not node
    assert apply(Twice(3), Y, X) is not apply(Twice(3), X, Y)


def test_an_op_that_is_not_pure_is_another_node_each_time():
    assert apply(Tossed(3), X) is not apply(Tossed(3), X)


def test_an_existing_node_keeps_its_line_and_no_spec_is_inferred_again():
    node = apply(Twice(4), X)
    count = len(INFERRED)
    again = apply(Twice(4), X)
    assert again.origin == node.origin and len(INFERRED) == count


def test_other_operands_of_equal_specs_keep_spec_and_line_and_of_others_are_inferred():
    node = apply(Twice(5), X)
    count = len(INFERRED)
    moved = with_operands(node, (Y,))
    assert moved.operands == (Y,) and moved.spec is node.spec and moved.origin == node.origin
    assert len(INFERRED) == count
    wide = with_operands(node, (cg.Var((7,), "float64"),))
    assert wide.spec == Spec((7,), np.dtype("float64")) and wide.origin == node.origin


def test_operands_are_older_than_their_users_and_later_nodes_exceed_a_serial():
    first = apply(Twice(6), X)
    between = next_serial()
    second = apply(Twice(7), first)
    assert X.serial < first.serial < between < second.serial


def test_only_the_fields_of_an_op_are_pickled():
    op = Twice(8)
    number = number_of(op)
    again = pickle.loads(pickle.dumps(op))
    assert again == op and vars(again) == {"scale": 8} and number_of(again) == number


# -- what operators call -----------------------------------------------------------------------------------------------

A, B = np.array([7, 2, 5]), np.array([2, 3, 2])
BINARY = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "**": lambda a, b: a**b,
    "@": lambda a, b: a @ b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "divmod": divmod,
}


@pytest.mark.parametrize("name", BINARY)
def test_operators_of_two_take_their_operands_in_order_from_either_side(name):
    function = BINARY[name]
    expected = function(A, B)
    for a, b in ((cg.Const(A), cg.Const(B)), (cg.Const(A), B), (A, cg.Const(B))):
        results = function(a, b)
        pairs = zip(results, expected) if isinstance(results, tuple) else [(results, expected)]
        for node, want in pairs:
            got = node.eval()
            assert got.dtype == want.dtype and got.tolist() == want.tolist()


@pytest.mark.parametrize("name", ["-", "//", "%", "**", "<<", "divmod"])
def test_a_number_may_be_on_the_left(name):
    function = BINARY[name]
    got, want = function(9, cg.Const(B)), function(9, B)
    for node, expected in zip(got, want) if isinstance(got, tuple) else [(got, want)]:
        assert node.eval().tolist() == expected.tolist()


def test_operators_of_one():
    a = np.array([-3, 0, 2])
    x = cg.Const(a)
    assert [node.eval().tolist() for node in (-x, abs(x), ~x, +x)] == [[3, 0, -2], [3, 0, 2], [2, -1, -3], [-3, 0, 2]]
    assert round(cg.Const([1.26, -2.74]), 1).eval().tolist() == [1.3, -2.7]


def test_methods_take_what_the_library_uses_and_what_numpy_has():
    a = np.arange(6.0).reshape(2, 3)
    x = cg.Const(a)
    assert x.sum(axis=1).eval().tolist() == [3.0, 12.0]
    assert x.sum(axis=0, initial=10.0).eval().tolist() == [13.0, 15.0, 17.0]  # a keyword that only NumPy's method has
    assert x.T.eval().tolist() == a.T.tolist()
    assert x[1, ::2].eval().tolist() == [3.0, 5.0]
    assert {"sum", "cumsum", "serial"} <= set(dir(x))
    with pytest.raises(AttributeError, match="Node has no attribute '_nothing'"):
        _ = x._nothing
    assert not hasattr(x, "nothing_of_this_name")


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.max(0, None), lambda x: x.min(1, None), lambda x: x.sum(0, None), lambda x: x.mean(1, None),
        lambda x: x.clip(1, 4, None), lambda x: x.std(0, None), lambda x: x.var(1, None), lambda x: x.cumsum(0, None),
        lambda x: x.prod(1, None), lambda x: x.any(1, None), lambda x: x.argmax(0, None), lambda x: x.round(1, None),
    ],
)  # fmt: skip
def test_methods_take_as_many_arguments_by_position_as_those_of_numpy(call):
    a = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(call(cg.Const(a)).eval(), call(a))


# -- what a node is not ------------------------------------------------------------------------------------------------


def test_a_node_iterates_over_its_first_axis_and_a_scalar_has_none():
    assert len(X) == 3 and [row.shape for row in X] == [(4,)] * 3
    assert len(cg.Var((0, 4))) == 0 and list(cg.Var((0, 4))) == []
    with pytest.raises(TypeError, match=r"s float32\[\] is a scalar and has no length"):
        len(cg.Var((), name="s"))


REFUSALS = [
    ("neither True nor False", GraphError, bool),
    (r"call \.eval\(\)", NoMeaningError, np.asarray),
    ("x.at", NoMeaningError, lambda x: x.__setitem__(0, 1)),
    ("np.delete", NoMeaningError, lambda x: x.__delitem__(0)),
    ("is a node, not a function", NoMeaningError, lambda x: x(1)),
    *(("holds no data; call .item", NoMeaningError, kind) for kind in (float, int, complex, operator.index)),
    ("holds no data; call .item", NoMeaningError, lambda x: f"{x:.2f}"),
]


@pytest.mark.parametrize("says, kind, act", REFUSALS)
def test_what_needs_numbers_says_where_the_node_is_and_what_helps(says, kind, act):
    with pytest.raises(kind, match=says) as refused:
        act(X)
    assert f"x at {X.where}" in str(refused.value)


def test_a_node_says_its_name_spec_file_and_line():
    node, line = cg.sin(X), X.origin[1]
    assert repr(X) == f"<x float32[3,4] at test_graph.py:{line}>" == f"{X}"
    assert node.name == "sin" and X.name == "x" and node.where == f"test_graph.py:{node.origin[1]}"
    assert Path(node.origin[0]) == Path(__file__)
    assert "\x1b" not in repr(cg.Var((1,), name="red\x1b[31m"))


# -- facets of ops, and errors -----------------------------------------------------------------------------------------


def test_facets_that_an_op_lacks_name_it():
    node = apply(Twice(9), X)
    with pytest.raises(NoGradientError, match="twice has no gradient"):
        node.op.grad(node, node)
    with pytest.raises(NoKernelError, match="twice has no kernel"):
        node.op.work(None, X.spec)
    with pytest.raises(NotImplementedError, match="twice does not define meaning"):
        node.op.meaning(np.zeros(1))
    assert node.op.multiply_adds(X.spec) == 0 and node.op.cut(X.spec) is None and node.op.alias(X) is None
    assert node.op.reads((X, Y)) == (X, Y) and node.op.reason(node) is node and node.op.row_rule(X.spec) is None
    with pytest.raises(NotImplementedError, match="op does not define infer"):
        Op().infer(X.spec)


@pytest.mark.parametrize(
    "dtype, says", [("complex64", "support complex operands"), ("bfloat16", "compute in bfloat16")]
)
def test_operands_that_an_op_does_not_compute_are_refused_in_any_place(dtype, says):
    odd = cg.Var((3, 4), dtype, "odd")
    for operands in ((odd, X), (X, odd)):
        with pytest.raises(DTypeError, match=f"twice does not {says}") as refused:
            apply(Twice(), *operands)
        named = ", ".join(f"{x.name} {x.spec}" for x in operands)
        assert str(refused.value).startswith("twice at test_graph.py:") and str(refused.value).endswith(f"({named})")


def test_an_error_gets_its_place_once():
    @locates_errors
    def outer(x):
        return inner(x)

    @locates_errors
    def inner(x):
        raise GraphError("too odd")

    with pytest.raises(GraphError) as refused:
        outer(1)
    assert str(refused.value).count(" at ") == 1 and str(refused.value).startswith("inner at test_graph.py:")
    assert str(refused.value).endswith(": too odd") and refused.value.is_located


@pytest.mark.parametrize("place", [None, ("pass.py", 3)], ids=["of the caller", "of a file"])
def test_an_error_of_a_node_on_other_operands_names_the_nodes_line(place):
    """Whoever rebuilds a graph, it is the user's line that does not fit."""
    with origin_at("net.onnx", 7):
        node = cg.concat([X, Y])
    with origin_at(*place) if place else nullcontext():
        for rebuilt in (with_operands, with_new_operands):
            with pytest.raises(CgraphError, match=r"^concat at net\.onnx:7: .*w float32\[2,5\]"):
                rebuilt(node, (X, cg.Var((2, 5), name="w")))
        with pytest.raises(CgraphError, match=rf"^concat at {'pass' if place else 'test_graph'}\.py:\d+: "):
            apply(node.op, X, cg.Var((2, 5), name="w"))


def test_located_errors_keep_their_class():
    error = locate(DTypeError("odd"), "sin at x.py:1: odd")
    assert type(error) is DTypeError and str(error) == "sin at x.py:1: odd" and error.is_located


def test_arguments_that_cannot_be_read_are_shown_shortened_and_errors_of_callers_pass():
    with pytest.raises(ArgumentError, match=r"^concat at test_graph\.py:\d+: object of type 'int' .*\(given 5\)$"):
        cg.concat(5)
    for args, named, shown in (((5, "z" * 100), {}, ""), ((5,), {"axis": "z" * 100}, "axis=")):
        with pytest.raises(ArgumentError) as refused:
            cg.concat(*args, **named)
        assert str(refused.value).endswith(f"(given 5, {shown}'" + "z" * 59 + ")")

    @locates_errors
    def called(x):
        return x + {}

    for act in (lambda: called(1), called):  # in the function, and where it is called with too few arguments
        with pytest.raises(TypeError) as passed:
            act()
        assert not isinstance(passed.value, ArgumentError)


@pytest.mark.parametrize(
    "name, snake", [("Conv2d", "conv2d"), ("MaxPoolIndices", "max_pool_indices"), ("Sin", "sin"), ("A", "a"), ("", "")]
)
def test_names_in_snake_case(name, snake):
    assert snake_case(name) == snake


def test_an_error_that_gets_its_place_keeps_its_cause():
    for act in (lambda: cg.astype(X, "no such"), lambda: cg.concat(5)):
        with pytest.raises(CgraphError, match="at test_graph.py:") as refused:
            act()
        assert type(refused.value.__cause__) is TypeError


def test_a_message_lists_operands_where_there_are_some():
    origin = Origin("a.py", 3, "blocks.0")
    assert located_message(Twice(), (), origin, "odd") == "twice at a.py:3 in blocks.0: odd"
    assert located_message(Twice(), (X, Y), origin, "odd").endswith(": odd (x float32[3,4], y float32[3,4])")
