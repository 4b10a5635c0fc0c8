"""The counts of error messages that carry values and a way out."""

import ast

import pytest

from benchmarks.messages import Message, functions_of, messages, text_of

HELPER = "def hint_of(x):\n    return f'{x} is too small; raise budget='\n"


def message(statement: str) -> Message | None:
    node = ast.parse(statement).body[0]
    assert isinstance(node, ast.Raise)
    text = text_of(node, functions_of([ast.parse(HELPER)]))
    return None if text is None else Message("cgraph/ops/conv.py", 1, text)


@pytest.mark.parametrize(
    ("statement", "values", "way_out"),
    [
        ("raise ShapeError('shapes differ')", False, False),
        ("raise ShapeError(f'x has shape {x}')", True, False),
        ("raise ShapeError(f'x has shape {x}. Transpose w')", True, True),
        ("raise ShapeError('no plan: ' 'raise budget= or allow recompute=True')", False, True),
        ("raise GraphError(f'threads={n} differ')", True, False),
        ("raise GraphError('compile takes nodes')", False, False),
        ("raise GraphError(f'{x} is not a node: ' + f'wrap it in cg.Const')", True, True),
        ("raise GraphError('--runs is 0')", False, False),
        ("raise GraphError('no maximum; give --maximum')", False, True),
        ("raise ImportError('no Pillow: pip install Pillow')", False, True),
        ("raise BudgetError(hint_of(x))", True, True),
        ("raise hint_of(x)", True, True),
        ("raise errors.ShapeError(f'{x}' if x else 'none')", True, False),
    ],
)
def test_values_and_ways_out_are_recognised(statement, values, way_out):
    row = message(statement)
    assert row is not None and (row.values, row.way_out) == (values, way_out)


@pytest.mark.parametrize("statement", ["raise error", "raise NotImplementedError('x')", "raise _Stop()", "raise"])
def test_what_users_do_not_meet_is_not_counted(statement):
    assert message(statement) is None


def test_every_package_with_errors_is_counted():
    packages = {row.package for row in messages()}
    assert {"cgraph", "cgraph/ops", "cgraph/formats", "nn", "nn/layers"} <= packages
