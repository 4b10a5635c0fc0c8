"""Values of dynamic length by hand: cut and padded axes, masks of one axis or all, common lengths, users' maxima."""

import numpy as np
import pytest

from cgraph.engine.reference import evaluate
from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.dynamic.bounds import Size
from cgraph.formats.onnx.dynamic.value import (
    LONG_MASK,
    Ragged,
    apply_maximum,
    broadcast_lengths,
    common_length,
    counts_of,
    cut_to_common,
    fill_padding,
    first_elements,
    lengths_of,
    node_in,
    resize_axis,
    valid_mask,
    with_lengths,
)
from cgraph.ops.leaf import Const, Var
from tests.support.onnx_context import context, holds, length

TABLE = np.arange(1, 13, dtype="f4").reshape(3, 4)


@pytest.fixture
def c():
    return context(maximum={"five": 5, "two": 2})


def result(x, values=()):
    return evaluate([x], {v: np.asarray(n, v.dtype) for v, n in dict(values).items()})[0]


def test_an_array_is_cut_to_lengths_and_maxima(c):
    n = length(c, "n", 2)
    x = with_lengths(Const(TABLE), {1: 3, 0: n})
    assert isinstance(x, Ragged) and x.node.shape == (2, 3) and list(x.counts) == [0] and x.counts[0].high == 2
    assert (x.ndim, x.dtype, x.text) == (2, np.dtype("f4"), "float32[≤2,3]")
    assert lengths_of(x) == [n, 3] and counts_of(x) == {0: n} and node_in(x) is x.node
    whole = with_lengths(Const(TABLE), {0: 2, 1: -1})
    assert whole.shape == (2, 0) and counts_of(whole) == {} and lengths_of(whole) == [2, 0]
    long = with_lengths(Const(TABLE), {0: Size(n.node, -5, np.inf)})
    assert (long.node.shape, long.counts[0].low, long.counts[0].high) == ((3, 4), 0, 3)


def test_a_length_above_its_array_is_refused(c):
    for n in (4, Size(Var((), "int64", "n"), 4, 8)):
        with pytest.raises(
            FormatError, match="axis 0 has at least 4 elements, more than the maximum 3: raise maximum="
        ):
            with_lengths(Const(TABLE), {0: n})
    assert with_lengths(Const(TABLE), {0: Size(Var((), "int64", "n"), 3, 8)}).node.shape == (3, 4)


def test_an_axis_is_cut_at_its_end_or_padded_with_zeros():
    for n in (0, 2, 4):
        np.testing.assert_array_equal(result(resize_axis(Const(TABLE), 1, n)), TABLE[:, :n])
    np.testing.assert_array_equal(result(resize_axis(Const(TABLE), 0, 5)), np.pad(TABLE, [(0, 2), (0, 0)]))


def test_padding_of_all_axes_or_one_is_filled(c):
    n, m = length(c, "n", 3), length(c, "m", 4)
    x = with_lengths(Const(TABLE), {0: n, 1: m})
    values = {n.node: 2, m.node: 3}
    rows, columns = np.arange(3)[:, None] < 2, np.arange(4) < 3
    for axes, mask in ((None, rows & columns), ([0], rows), ([1], columns), ([1, 0], rows & columns)):
        np.testing.assert_array_equal(
            np.broadcast_to(result(valid_mask(c.limits, x, axes), values), (3, 4)), mask | (TABLE < 0)
        )
        specified = 2 if axes == [1] else 3  # rows beyond the length have any value unless they are filled
        got = result(fill_padding(c.limits, x, -7, axes), values)
        np.testing.assert_array_equal(got[:specified], np.where(mask, TABLE, -7)[:specified])
    assert fill_padding(c.limits, x, -7, [2]) is x.node
    fixed = Const(TABLE)
    assert fill_padding(c.limits, fixed, -7) is fixed


@pytest.mark.parametrize("n", [0, 1, LONG_MASK - 1, LONG_MASK, 3 * 6 * 4093, 4099 * 22, 65537])
def test_masks_of_any_length(n, c):
    """Long ones are matrices: whole rows, a last row in part, none; a length of no fitting divisor is one row."""
    count = length(c, "n", max(n, 1)).node
    for m in {0, 1, n - 1, n, n // 2, n - n // 3} - {-1}:
        mask = result(first_elements(c.limits, n, count), {count: m})
        assert mask.shape == (n,) and mask.sum() == min(m, n) and mask[:m].all()


@pytest.mark.parametrize(("n", "columns"), [(16 * 4099, 16), (15 * 4373, 1), (LONG_MASK, 4096), (LONG_MASK - 1, 1)])
def test_a_long_mask_is_a_matrix_where_its_length_has_a_fitting_divisor(n, columns, c):
    mask = first_elements(c.limits, n, length(c, "n", n).node)
    assert (mask.op.name, mask.operands[0].size) == (("reshape", n) if columns > 1 else ("less", n))
    assert columns == 1 or mask.operands[0].shape == (n // columns, columns)


def test_a_common_length_is_a_number_where_one_is(c):
    n, m = length(c, "n", 9), length(c, "m", 7)
    assert common_length(c.limits, [n, 4, m], "text") == 4 and len(c.limits.checks) == 2
    assert holds(c, {n.node: 4, m.node: 4}) and not holds(c, {n.node: 4, m.node: 5})
    assert common_length(c.limits, [n, m], "text") is m  # of the lower bound
    with pytest.raises(FormatError, match="^text$"):
        common_length(c.limits, [m, 8], "text")
    parts = [(Const(TABLE), 1, n), (Const(TABLE), 0, m)]
    nodes, same = cut_to_common(c.limits, parts, "text")
    assert same is m and [x.shape for x in nodes] == [(3, 3), (3, 4)]
    nodes, same = cut_to_common(c.limits, [*parts, (Const(TABLE[:2]), 0, 2)], "text")
    assert same == 2 and [x.shape for x in nodes] == [(3, 2), (2, 4), (2, 4)]


def test_values_that_broadcast_have_the_lengths_of_their_result(c):
    n, m = length(c, "n", 3), length(c, "m", 3)
    table, row, column = with_lengths(Const(TABLE), {0: n}), Const(TABLE[:1]), with_lengths(Const(TABLE[:, :1]), {0: m})
    nodes, lengths = broadcast_lengths(c.limits, [table, row, column, Const(TABLE[0])], "text")
    assert [x.shape for x in nodes] == [(3, 4), (1, 4), (3, 1), (4,)] and list(lengths) == [0]
    assert holds(c, {n.node: 2, m.node: 2}) and not holds(c, {n.node: 2, m.node: 3})
    vector = with_lengths(Const(TABLE[0]), {0: length(c, "k", 4)})
    with pytest.raises(FormatError, match="^text$"):
        broadcast_lengths(
            c.limits,
            [with_lengths(Const(TABLE), {1: 3}), with_lengths(Const(TABLE[0]), {0: Size(n.node, 4, 4)})],
            "text",
        )
    nodes, lengths = broadcast_lengths(c.limits, [Const(TABLE[:, :2]), vector], "text")
    assert lengths == {1: 2} and [x.shape for x in nodes] == [(3, 2), (2,)]


def test_a_users_maximum_is_checked_once_and_bounds(c):
    x, n = Var((2,), "int64", "x"), length(c, "n", 9)
    assert apply_maximum(c.limits, "other", x) is x and not c.limits.checks
    assert apply_maximum(c.limits, "five", x) is x and apply_maximum(c.limits, "five", x) is x
    assert [y.text for y in c.limits.checks] == ["maximum gives 5 for 'five'; it is larger"]
    assert c.limits.bounds(x)[1].tolist() == [5, 5] and holds(c, {x: [5, 0]}) and not holds(c, {x: [0, 6]})
    got = apply_maximum(c.limits, "two", with_lengths(Const(TABLE), {1: Size(n.node, 0, 9)}))
    assert got.node.shape == (3, 2) and got.counts[1].high == 2 and c.limits.bounds(n.node)[1] == 2
    assert c.limits.checks[-1].text == "maximum gives 2 for 'two'; it has more elements along axis 1"
    assert holds(c, {x: [0, 0], n.node: 2}) and not holds(c, {x: [0, 0], n.node: 3})


@pytest.mark.parametrize("kind", ["bool", "empty", "two axes", "sequence"])
def test_a_maximum_of_another_value_is_refused(c, kind):
    n, m = length(c, "n", 3), length(c, "m", 4)
    values = {
        "bool": Var((2,), bool, "b"),
        "empty": Var((0,), "int64", "e"),
        "two axes": with_lengths(Const(TABLE), {0: n, 1: m}),
        "sequence": [Const(TABLE)],
    }
    with pytest.raises(FormatError, match="maximum gives 5 for 'five', which is neither"):
        apply_maximum(c.limits, "five", values[kind])


def test_an_array_that_is_zero_behind_its_lengths_is_not_filled_with_zeros_again(c):
    x = Var((2, 3, 4), "float32", "x")
    n, m = length(c, "n", 3), length(c, "m", 4)
    value = Ragged(x, {1: n, 2: m})
    c.limits.zero_padded[x] = {1: n.node, 2: m.node}
    assert fill_padding(c.limits, value, 0) is x and fill_padding(c.limits, value, False, [2]) is x
    turned = cg.transpose(cg.transpose(x, (2, 0, 1)), (1, 0, 2))  # [2, 4, 3]
    for lengths, is_zero in (({1: m, 2: n}, True), ({1: n, 2: m}, False), ({1: m}, False)):
        assert (fill_padding(c.limits, Ragged(turned, lengths), 0) is turned) == is_zero
    assert fill_padding(c.limits, value, 1) is not x and fill_padding(c.limits, value, -np.inf) is not x
