"""Every option that is True or False does with nodes what it does with arrays, beside what its default does."""

import ast
import inspect
from collections.abc import Iterator

import numpy as np
import pytest

from cgraph.numpy.dispatch import name_of
from cgraph.numpy.table import FUNCTIONS
from tests.numpy.calls import CALLS, operands
from tests.numpy.evaluated import assert_same, called, nodes, values

LEFT_OUT = {"copy", "subok", "overwrite_input", "where"}  # of arrays in memory; a mask, which is no option
REFUSED = {("polyfit", "full"), ("polyfit", "cov"), ("einsum_path", "einsum_call")}


def options() -> Iterator[tuple[object, str, bool]]:
    """Functions, one of each meaning, their options of bool, and the value that is no default."""
    by_meaning = {ours: function for function, ours in reversed(FUNCTIONS.items())}
    for ours, function in by_meaning.items():
        for name, parameter in inspect.signature(ours).parameters.items():
            is_left_out = name in LEFT_OUT or (ours.__name__, name) in REFUSED
            if isinstance(parameter.default, bool) and not is_left_out:
                yield function, name, not parameter.default


def calls_with(function: object, name: str, value: bool) -> Iterator[str]:
    """The calls of the table that name a function and not its option, with the option."""
    for text in CALLS:
        tree = ast.parse(text, mode="eval")
        call = tree.body
        if not isinstance(call, ast.Call) or any(x.arg == name for x in call.keywords):
            continue
        try:
            is_called = eval(ast.unparse(call.func), {"np": np}) is function
        except (NameError, AttributeError):
            continue
        if is_called:
            call.keywords.append(ast.keyword(name, ast.Constant(value)))
            yield ast.unparse(tree)


@pytest.mark.parametrize(
    ("function", "name", "value"), [pytest.param(*x, id=f"{name_of(x[0])}-{x[1]}") for x in options()]
)
def test_an_option_does_what_numpys_does(function, name, value):
    compared = 0
    for call in calls_with(function, name, value):
        try:
            want = called(call, operands())
        except (TypeError, ValueError, np.linalg.LinAlgError):
            continue  # this call cannot have the option
        got = values(called(call, nodes()))
        assert len(got) == len(want)
        for x, y in zip(got, want):
            assert_same(x, y)
        compared += 1
    assert compared or any(f"{name_of(function)}(" in call and f"{name}=" in call for call in CALLS)
