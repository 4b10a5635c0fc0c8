from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cgraph.view.layered import _settle, layered
from tests.support.tolerance import assert_near


@st.composite
def graphs(draw):
    count = draw(st.integers(0, 30))
    return [draw(st.lists(st.integers(0, i - 1), max_size=3)) if i else [] for i in range(count)]


@given(graphs())
def test_every_node_is_below_its_operands_and_beside_no_other(operands):
    columns, layers = layered(operands)
    assert len(columns) == len(layers) == len(operands)
    for i, xs in enumerate(operands):
        assert all(layers[x] < layers[i] for x in xs)
    for layer in set(layers):
        row = sorted(columns[i] for i in range(len(operands)) if layers[i] == layer)
        assert all(right - left >= 1 - 1e-9 for left, right in pairwise(row))


def test_a_leaf_stands_right_above_its_first_user():
    _, layers = layered([[], [0], [1], [2], [], [3, 4]])
    assert layers == [0, 1, 2, 3, 3, 4]


def test_what_is_made_of_leaves_alone_stands_right_above_its_first_user():
    """In a chain of products, each with weights that are packed first, no layer is wider than one product."""
    operands, last = [[]], 0
    for _ in range(50):
        at = len(operands)
        operands += [[], [at], [last, at + 1]]
        last = at + 2
    _, layers = layered(operands)
    assert max(Counter(layers).values()) <= 3
    for i in range(1, len(operands), 3):
        assert (layers[i], layers[i + 1]) == (layers[i + 2] - 2, layers[i + 2] - 1)


def test_a_chain_is_straight():
    columns, layers = layered([[]] + [[i] for i in range(20_000)])
    assert set(columns) == {0.0}
    assert layers == list(range(20_001))


def test_a_fork_stands_over_the_middle_of_its_users():
    columns, _ = layered([[], [0], [0], [0], [1, 2, 3]])
    assert sorted(columns[1:4]) == [-1.0, 0.0, 1.0]
    assert columns[0] == columns[4] == 0.0


def test_many_users_of_one_node_take_one_layer():
    columns, layers = layered([[]] + [[0]] * 10_000)
    assert layers[1:] == [1] * 10_000
    assert max(columns) - min(columns) >= 9_999


def test_a_value_of_one_that_others_read_too_stays_below_it():
    """Node 6 is computed from leaves alone, but 7 reads its operand as well."""
    operands = [[], [0], [1], [2], [], [4], [5], [1, 5], [3, 6]]
    assert layered(operands)[1] == [0, 1, 2, 3, 0, 1, 2, 2, 4]
    operands[7] = [1]
    assert layered(operands)[1][4:7] == [1, 2, 3]


def test_no_nodes_and_one_are_placed():
    assert layered([]) == ([], []) and layered([[]]) == ([0.0], [0])


@given(graphs())
def test_layers_are_settled_last_by_their_users_from_below(operands):
    """Settled by them once more, no node moves; the last node reads all that no other reads."""
    operands = [*operands, sorted(set(range(len(operands))).difference(*operands))]
    columns, layers = layered(operands)
    users = [[i for i, xs in enumerate(operands) for _ in range(xs.count(x))] for x in range(len(operands))]
    before = list(columns)
    for layer in sorted(set(layers), reverse=True):
        _settle(sorted((i for i, at in enumerate(layers) if at == layer), key=columns.__getitem__), users, columns)
    assert_near(columns, before, "float64 coordinates")
