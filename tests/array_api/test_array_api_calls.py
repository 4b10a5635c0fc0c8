"""Calls of the standard: lazy first and eager where the lazy function refuses, signatures from text, wrapping."""

from inspect import Parameter, Signature

import numpy as np
import pytest

from cgraph import array_api as xp
from cgraph.array_api.array import Array
from cgraph.array_api.calls import (
    COUNTS,
    arrays_in,
    call_eagerly,
    call_lazily_or_eagerly,
    function,
    is_complex,
    node_of,
    signature_of,
    unwrap,
    value_of,
    wrap,
)
from cgraph.errors import ShapeError
from cgraph.numpy.results import QRResult
from cgraph.ops.leaf import Var


def array(*values, dtype="float64"):
    return Array(None, np.array(values, dtype))


def test_results_are_arrays_in_every_kind_of_sequence_and_other_things_pass():
    node = Var((2,), "float32")
    lazy = wrap(node, 7)
    assert lazy.node is node and lazy.count == 7
    both = wrap(QRResult(np.ones(2), np.float32(3)), 1)
    assert type(both) is QRResult and both.Q.value.tolist() == [1, 1] and both.R.value.shape == ()
    parts = wrap([np.zeros(1), (np.ones(1), "text")], 1)
    assert type(parts) is list and type(parts[1]) is tuple and parts[1][1] == "text"
    assert parts[1][0].value.tolist() == [1] and wrap(None, 1) is None


def test_arguments_are_nodes_or_values_in_tuples_and_lists():
    x, y = array(1, 2), array(3)
    assert unwrap([x, (y, 5)], node_of) == [x.node, (y.node, 5)]
    values = unwrap((x, [y]), value_of)
    assert values[0].tolist() == [1, 2] and type(values[1]) is list and values[1][0].tolist() == [3]
    assert arrays_in((1, [x, (y,)], "x")) == [x, y]


def test_complex_is_seen_in_numbers_dtypes_arrays_and_sequences():
    for x in (1j, np.dtype("complex64"), np.complex128, array(1, dtype="complex64"), [1.0, (2.0, 3j)]):
        assert is_complex(x), x
    for x in (1.0, np.dtype("float64"), np.float64, array(1), [1.0, (2.0,)], None, ()):
        assert not is_complex(x), x


def refuse(*args, **kwargs):
    raise ShapeError("refused")


@pytest.mark.parametrize("pack", [lambda *xs: list(xs), lambda *xs: xs, lambda x, y: [[x], (y, 1)]])
def test_pending_nodes_of_arrays_in_lists_are_counted(pack):
    x, y = array(1, 2) + array(3, 4), array(5, 6)
    for arguments, named in (((pack(x, y),), {}), ((), {"xs": pack(x, y)})):
        joined = call_lazily_or_eagerly("joined", lambda xs: node_of(x) + 1, refuse, arguments, named)
        assert joined.count == 1 + x.count + y.count


def test_the_lazy_function_is_first_and_the_eager_one_only_where_it_refuses():
    x, y = array(1, 2), array(3, 4)
    before = COUNTS.copy()
    lazy = call_lazily_or_eagerly("calls", lambda a, b: a + b, refuse, (x,), {"b": y})
    assert lazy.count == 3 and lazy.value.tolist() == [4, 6]
    assert (COUNTS - before) == {("calls", "lazy"): 1}
    eager = call_lazily_or_eagerly("calls", refuse, np.subtract, (x, y), {})
    without = call_lazily_or_eagerly("calls", None, np.subtract, (y, x), {})
    assert eager.value.tolist() == [-2, -2] and without.value.tolist() == [2, 2] and eager.count == 1
    assert (COUNTS - before) == {("calls", "lazy"): 1, ("calls", "eager"): 2}


def test_a_users_mistake_in_numpy_is_an_error_and_divisions_by_zero_are_none():
    with np.errstate(all="raise"):
        assert call_eagerly("calls", np.divide, (array(1), array(0)), {}).value.tolist() == [np.inf]
    with pytest.raises(ValueError, match="shape"):
        call_eagerly("calls", np.add, (array(1, 2), array(1, 2, 3)), {})


def test_a_signature_has_the_kinds_and_defaults_of_its_text():
    parameters = signature_of("x, y, /, n=None, *, axis=-1, mode='reduced'").parameters
    assert [(p.name, p.kind, p.default) for p in parameters.values()] == [
        ("x", Parameter.POSITIONAL_ONLY, Parameter.empty),
        ("y", Parameter.POSITIONAL_ONLY, Parameter.empty),
        ("n", Parameter.POSITIONAL_OR_KEYWORD, None),
        ("axis", Parameter.KEYWORD_ONLY, -1),
        ("mode", Parameter.KEYWORD_ONLY, "reduced"),
    ]


def test_arguments_are_prepared_whether_or_not_they_need_binding():
    received = []

    def eager(*args, **kwargs):
        received.append((args, kwargs))
        return np.zeros(1)

    plain = function("plain", "x, y, /", None, eager, lambda x, y: (y, x))
    plain(1, 2)
    keyed = function("keyed", "x, /, y=0, *, axis=-1", None, eager, lambda x, y: (y, x))
    keyed(1)
    keyed(1, y=2, axis=0)
    assert received == [((2, 1), {}), ((0, 1), {"axis": -1}), ((2, 1), {"axis": 0})]
    for arguments, named in (((1,), {}), ((1, 2, 3), {}), ((1,), {"y": 2})):
        with pytest.raises(TypeError):
            plain(*arguments, **named)
    assert plain.__name__ == "plain" and "plain" in plain.__doc__
    for arguments, named in (((1, 2), {"dtype": "float32"}), ((1, 2), {"y": 3})):
        with pytest.raises(TypeError):
            plain(*arguments, **named)
    for arguments, named in (((1, 2, 0), {}), ((1, 2), {"mode": 1})):
        with pytest.raises(TypeError):
            keyed(*arguments, **named)


FUNCTIONS = {name: f for name, f in vars(xp).items() if isinstance(getattr(f, "__signature__", None), Signature)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_the_standard_takes_by_name_is_not_taken_by_position_nor_the_other_way_round(name):
    f, parameters = FUNCTIONS[name], FUNCTIONS[name].__signature__.parameters.values()
    by_position = [p for p in parameters if p.kind is not Parameter.KEYWORD_ONLY]
    operands = [np.ones((2, 2))] * len(by_position)
    with pytest.raises(TypeError, match="too many positional arguments"):
        f(*operands, 1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'unknown'"):
        f(*operands, unknown=1)
    for p in by_position:
        if p.kind is Parameter.POSITIONAL_ONLY:
            with pytest.raises(TypeError):
                f(*operands, **{p.name: 1})


def test_which_values_and_dtypes_are_complex():
    z, x = Array(None, np.ones(2, "complex64")), Array(None, np.ones(2))
    for one in (z, 1j, np.complex64, np.complex128, np.dtype("complex64"), [x, z], (1, [2j]), np.complex128(1)):
        assert is_complex(one)
    for other in (x, 1, 2.5, None, np.float32, np.dtype("float64"), [x, 3], (), "complex64", True):
        assert not is_complex(other)
