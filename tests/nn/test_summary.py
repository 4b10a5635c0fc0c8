import numpy as np

import cgraph as cg
import nn
from nn.summary import node_macs, rows_of, table, text


def test_a_layer_that_is_used_twice_has_two_rows_and_its_values_once():
    layer = nn.Linear(3, 3)
    model = nn.Sequential(nn.Input((3,)), layer, nn.Activation("relu"), layer)
    rows, macs = rows_of(model, n=2)
    assert [r.kind for r in rows] == ["Input", "Linear", "Activation", "Linear"]
    assert macs == 2 * 2 * 9 and model.size == 12
    assert str(nn.summary(model)).splitlines()[-1].split()[-2:] == ["12", "18"]


def test_numbers_are_aligned_to_the_right():
    lines = table([("a", "b", "c", "d"), ("x", "y", "z", "100"), ("total", "", "", "7")]).splitlines()
    assert len({len(x) for x in lines}) == 1 and lines[-1].endswith("    7")


def test_a_shape_without_axes_is_a_number():
    assert text(()) == "number" and text((2, 3)) == "2×3"


def layer_macs(layer, *shape):
    _, macs = rows_of(layer, [nn.Sample(shape)], n=3)
    assert rows_of(layer, [nn.Sample(shape)])[1] * 3 == macs
    return macs // 3


def test_multiply_adds_are_counted_for_every_layer_that_multiplies():
    """Of a convolution for each result, of its adjoint for each operand: channels of a group times window."""
    assert layer_macs(nn.Linear(4, 5), 4) == 4 * 5
    assert layer_macs(nn.Linear(4, 5), 6, 4) == 6 * 4 * 5
    assert layer_macs(nn.FullyConnected(12, 5), 3, 4) == 12 * 5
    assert layer_macs(nn.SwiGLU(4, 6), 4) == 3 * 4 * 6
    assert layer_macs(nn.Conv1d(4, 6, 3, groups=2), 4, 9) == 6 * 7 * 2 * 3
    assert layer_macs(nn.Conv2d(4, 6, (3, 2), (2, 1)), 4, 9, 5) == 6 * 4 * 4 * 4 * 6
    assert layer_macs(nn.Conv3d(2, 3, (1, 2, 3), pad=(0, 1, 0)), 2, 4, 5, 6) == 3 * 4 * 6 * 4 * 2 * 6
    assert layer_macs(nn.TransposeConv1d(4, 6, 3, 2, groups=2), 4, 9) == 4 * 9 * 3 * 3
    assert layer_macs(nn.TransposeConv2d(4, 6, (3, 2)), 4, 9, 5) == 4 * 9 * 5 * 6 * 6
    assert layer_macs(nn.TransposeConv3d(2, 3, (1, 2, 3)), 2, 4, 5, 6) == 2 * 4 * 5 * 6 * 3 * 6
    assert layer_macs(nn.LSTM(4, 5), 7, 4) == 7 * (4 + 5) * 20
    assert layer_macs(nn.GRU(4, 5), 7, 4) == 7 * (4 + 5) * 15
    assert layer_macs(nn.Recurrent(4, 5), 7, 4) == 7 * (4 + 5) * 5
    assert layer_macs(nn.MultiHeadAttention(8, 4), 7, 8) == 4 * 7 * 8 * 8 + 2 * 7 * 7 * 8
    assert layer_macs(nn.MultiHeadAttention(8, 4, True, 2), 7, 8) == 2 * 7 * 8 * (8 + 4) + 2 * 7 * 7 * 8
    assert layer_macs(nn.BatchNorm(4), 4, 9) == layer_macs(nn.Activation("tanh"), 4) == 0


def test_results_by_name_are_rows_like_several_results():
    both = nn.Lambda(lambda x: {"sum": cg.sum(x), "rows": x @ np.ones((3, 2), "f4")})
    (row,), macs = rows_of(both, [nn.Sample((3,))], n=4)
    assert row.shapes == ((), (4, 2)) and (row.path, row.kind, row.size) == ("", "Lambda", 0)
    assert row.macs == macs == 4 * 3 * 2
    assert "number, 1×2" in nn.summary(both, [nn.Sample((3,))])


def test_the_last_line_counts_trained_and_other_values():
    model = nn.Sequential(nn.Linear(1000, 3), nn.BatchNorm(3, frozen=True), nn.BatchNorm(3))
    last = nn.summary(model, [nn.Sample((1000,))], 2).splitlines()[-1]
    assert last.split() == "total 18 values are not trained 3,009 6,000".split()


def test_a_notebook_shows_names_as_they_are():
    class Marked(nn.Layer):
        def build(self, *xs, mode):
            return xs[0]

    Marked.__name__ = "<b>&"
    html = nn.summary(Marked(), [nn.Sample((3,))])._repr_html_()
    assert html.startswith("<pre>layer") and "&lt;b&gt;&amp;" in html and "<b>" not in html


def test_samples_have_their_dtype_and_a_container_has_no_row_even_around_one_layer():
    model = nn.Sequential(nn.Embedding(9, 4))
    rows, macs = rows_of(model, [nn.Sample((3,), "int64")])
    assert [(x.path, x.kind, x.shapes) for x in rows] == [("parts.0", "Embedding", ((1, 3, 4),))] and macs == 0


def test_an_attention_multiplies_by_the_width_of_keys_and_by_that_of_values():
    q, k, v = cg.Var((2, 3, 5, 4)), cg.Var((2, 3, 7, 4)), cg.Var((2, 3, 7, 6))
    assert node_macs(cg.scaled_dot_product_attention(q, k, v)) == 2 * 3 * 5 * 7 * (4 + 6)
