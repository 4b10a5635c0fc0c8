"""What rules of Keras' layers share: names of arrays, the order of axes, masks, activations of both versions."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.formats.keras_layers import RULES
from cgraph.formats.keras_rules import (
    LayerRule,
    LayerUse,
    activate,
    activation_of,
    axis_of,
    channels_first,
    channels_last,
    constant,
    from_channels_last,
    is_keras3,
    merged_mask,
    per_channel,
    with_bias,
)
from cgraph.ir.traverse import post_order
from cgraph.ops.leaf import Const, ConstOp, Var
from tests.support.tolerance import assert_near

KERAS3 = {"dtype": {"class_name": "DTypePolicy", "config": {"name": "float32"}}}


def test_an_archive_has_the_arrays_that_no_option_turns_off():
    assert RULES["Conv1D"].arrays_of({"use_bias": False}) == ["kernel"]
    assert RULES["LSTM"].arrays_of({"use_bias": False}) == ["cell/kernel", "cell/recurrent_kernel"]
    assert RULES["MultiHeadAttention"].arrays_of({"use_bias": False})[::2] == [
        "query_dense/kernel",
        "value_dense/kernel",
    ]
    assert RULES["Attention"].arrays_of({"use_scale": False}) == [] and RULES["Attention"].arrays_of({}) == ["scale"]
    assert RULES["Normalization"].arrays_of({"mean": [1]}) == []
    statistics = ["moving_mean", "moving_variance"]
    assert RULES["BatchNormalization"].arrays_of({"scale": False}) == ["beta", *statistics]
    assert RULES["BatchNormalization"].arrays_of({"center": False}) == ["gamma", *statistics]
    for kind in ("LayerNormalization", "GroupNormalization"):
        assert RULES[kind].arrays_of({"scale": False, "center": True}) == ["beta"]
        assert RULES[kind].arrays_of({"scale": True, "center": False}) == ["gamma"]
    assert RULES["SeparableConv2D"].arrays_of({"use_bias": False}) == ["depthwise_kernel", "pointwise_kernel"]
    assert RULES["Normalization"].arrays_of({"mean": None}) == ["mean", "variance"]


def test_names_of_an_hdf5_file_become_those_of_a_rule():
    assert RULES["Dense"].named({"kernel": 1, "inner/kernel": 2}) == {"kernel": 1}
    assert RULES["GRU"].named({"gru_cell_3/bias": 1, "gru_cell_3/other": 2}) == {"cell/bias": 1}
    heads = {"query/kernel": 1, "attention_output/bias": 2, "other/kernel": 3}
    assert RULES["MultiHeadAttention"].named(heads) == {"query_dense/kernel": 1, "output_dense/bias": 2}


@pytest.mark.parametrize("shape", [(2,), (2, 3), (2, 3, 4), (2, 3, 4, 5), (2, 3, 4, 5, 6)])
def test_images_and_volumes_have_their_channels_first(shape):
    x = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    node = from_channels_last(Const(x))
    assert node.shape == (shape[0], *channels_first(list(shape[1:])))
    assert node.shape == (shape if len(shape) < 4 else (shape[0], shape[-1], *shape[1:-1]))
    np.testing.assert_array_equal(channels_last(node).eval(), x)
    for axis in range(-len(shape), len(shape)):
        assert node.shape[axis_of(axis, node)] == shape[axis]
    if len(shape) > 1:
        bias = np.arange(shape[-1], dtype="f4")
        np.testing.assert_array_equal(channels_last(node + per_channel(bias, node)).eval(), x + bias)
        np.testing.assert_array_equal(channels_last(with_bias(node, {"bias": bias})).eval(), x + bias)
        assert with_bias(node, {}) is node


def test_masks_are_merged_as_each_version_does():
    a, b = (Const(np.array(x)) for x in ([[True, True, False]], [[True, False, False]]))
    assert merged_mask([a, b], KERAS3).eval().tolist() == [[True, True, False]]
    assert merged_mask([a, b], {}).eval().tolist() == [[True, False, False]]
    assert merged_mask([a, None], KERAS3) is None and merged_mask([a, None], {}) is a
    assert merged_mask([None, None], {}) is None and merged_mask([], KERAS3) is None and merged_mask([a], KERAS3) is a


def test_the_hard_sigmoid_has_the_slope_of_its_version():
    x = np.linspace(-4, 4, 9, dtype="f4")
    for options, slope in ((KERAS3, 1 / 6), ({}, 0.2), ({"dtype": "float32"}, 0.2)):
        name = activation_of(options | {"activation": "hard_sigmoid"})
        found = cg.eval(activate(Const(x), name))
        assert_near(found, np.clip(x * np.float32(slope) + np.float32(0.5), 0, 1), "float32 formulas near zero")
    assert activation_of({}, "recurrent_activation", "sigmoid") == "sigmoid" and activation_of({}) is None


def test_rules_refuse_arguments_that_they_do_not_take():
    x = Var((1, 2))
    use = LayerUse({}, {}, [x], {"mask": x}, [None], {})
    with pytest.raises(FormatError, match="its argument mask= is not supported. Pass none by name"):
        LayerRule(lambda options, weights, xs: xs[0]).results(use)
    with pytest.raises(FormatError, match="its argument mask= is not supported. Pass use_causal_mask by name"):
        RULES["Attention"].results(use)


@pytest.mark.parametrize(("dtype", "is_newer"), [
    ({"class_name": "DTypePolicy", "config": {"name": "float32"}}, True), ({"class_name": "Policy"}, False),
    ({"class_name": "DTypePolicyMap"}, False), ({}, False), ("float32", False), ("DTypePolicy", False), (None, False),
])  # fmt: skip
def test_a_policy_of_keras_3_is_the_mark_of_its_layers(dtype, is_newer):
    """Keras 2 writes a text, or the policy of mixed precision."""
    options = {"dtype": dtype, "activation": "hard_sigmoid"}
    assert is_keras3(options) is is_newer
    assert activation_of(options) == ("hard_sigmoid" if is_newer else "hard_sigmoid of Keras 2")
    one, two = Var((1, 3), "bool"), None
    assert (merged_mask([one, two], options) is None) is is_newer


def test_an_array_in_the_order_of_its_memory_is_no_copy_and_another_is_one():
    x = np.arange(24, dtype="f4").reshape(4, 6)
    assert constant(x).op.array is x or np.shares_memory(constant(x).op.array, x)
    for other in (x.T, x[:, ::2], x[::-1]):
        found = constant(other).op.array
        np.testing.assert_array_equal(found, other, strict=True)
        assert found.flags.c_contiguous and not np.shares_memory(found, x)


def test_the_graph_of_a_layer_reads_its_arrays_where_they_lie():
    """Those of a product, of a table and of a recurrent layer; not those of filters, whose axes change places."""
    kernel = np.random.default_rng(0).normal(size=(6, 6)).astype("f4")
    use = LayerUse({}, {"kernel": kernel}, [Var((2, 6))], {}, [None], {})
    table = LayerUse({}, {"embeddings": kernel}, [Var((2, 3), "int32")], {}, [None], {})
    for kind, given in (("Dense", use), ("Embedding", table)):
        (y,) = RULES[kind].results(given).values
        constants = [x.op.array for x in post_order([y]) if isinstance(x.op, ConstOp)]
        assert any(np.shares_memory(x, kernel) for x in constants), kind
