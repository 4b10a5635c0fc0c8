"""The values of a network that become bytes: what layers read, shared scales, what stays float, layers left out."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.errors import GraphError, UnassignedError
from cgraph.quantiser.network import network_of, prepare, root
from tests.quantiser.nets import Net

X = cg.Var((1, 3, 8, 8), name="image")


def network(make):
    return network_of(prepare((make(Net()),), (X,)))


def test_layers_are_found_in_running_order_and_their_operands_become_bytes():
    found = network(lambda net: net.conv(cg.relu(net.conv(X, 8)), 4))
    assert len(found.layers) == len(found.all_layers) == 2 and found.layers[0].x is X
    first, second = found.layers
    assert first.last is second.x and {first.x, second.x} <= set(found.bytes)
    assert all(found.bytes[x] is x for x in (first.x, second.x))


def test_scores_behind_the_last_layer_stay_float():
    found = network(lambda net: cg.softmax(net.linear(cg.reshape(X, (1, 192)), 5), 1))
    (layer,) = found.layers
    assert set(found.bytes) <= {X, layer.x, layer.last} and found.outputs[0] not in found.bytes


def test_values_that_only_move_have_the_scale_of_what_they_move():
    found = network(lambda net: net.conv(cg.max_pool2d(cg.relu(net.conv(X, 8)), 2, 2)[:, :, 1:], 4))
    sliced = found.layers[1].x
    pooled = sliced.operands[0]
    assert found.bytes[sliced] is found.bytes[pooled] is found.layers[0].last


PADS = [(0, 0), (0, 0), (1, 2), (0, 1)]
BETWEEN = {
    "reshape": ("alike", lambda x: cg.reshape(x, (1, 8, 4, 16))),
    "transpose": ("alike", lambda x: cg.transpose(x, (0, 1, 3, 2))),
    "slice": ("alike", lambda x: x[:, :, ::2]),
    "max_pool": ("alike", lambda x: cg.max_pool2d(x, 2, 2)),
    "pad": ("alike", lambda x: cg.pad(x, PADS)),
    "avg_pool": ("own", lambda x: cg.avg_pool2d(x, 2, 1)),
    "resize": ("own", lambda x: cg.resize(x, (16, 16))),
    "pointwise": ("own", lambda x: cg.sigmoid(cg.tanh(x))),
    "concat": ("own", lambda x: cg.concat([x, cg.max_pool2d(X, 1, 1)], 1)),
    "pad by 1": ("none", lambda x: cg.pad(x, PADS, constant_values=1.0)),
    "cumsum": ("none", lambda x: cg.cumsum(x, 2)),
    "softmax": ("none", lambda x: cg.softmax(x, 1)),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_what_lies_between_two_layers_has_its_operands_scale_one_of_its_own_or_floats_before_it(name):
    scale, between = BETWEEN[name]
    found = network(lambda net: net.conv(between(cg.relu(net.conv(X, 8))), 4))
    first, second = found.layers
    assert second.x in set(found.bytes) and (first.last in set(found.bytes)) == (scale != "none")
    assert found.bytes[second.x] is (first.last if scale == "alike" else second.x)


@pytest.mark.parametrize(
    ("shape", "axes", "is_total"),
    [
        ((1, 8, 8, 8), (2, 3), True),
        ((1, 8, 8, 8), (3, 2), True),
        ((1, 8, 8, 8), 3, False),
        ((1, 8, 8, 8), (1, 2), False),
        ((1, 8, 8, 8), (1, 2, 3), False),
        ((1, 8, 8, 4, 2), (2, 3), False),
        ((1, 8, 64), 2, False),
    ],
)
def test_only_the_sum_over_all_pixels_of_an_image_stays_within_bytes(shape, axes, is_total):
    """Its operand becomes bytes, and the sum does not; of any other sum the result becomes bytes."""

    def make(net):
        mean = cg.mean(cg.reshape(cg.relu(net.conv(X, 8)), shape), axes)
        return net.linear(cg.reshape(mean, (1, mean.size)), 4)

    found = network(make)
    (total,) = [x for x in found.order if x.op.name == "sum"]
    assert (total in found.bytes, total.operands[0] in found.bytes) == (not is_total, is_total)


def test_parts_of_a_concat_have_its_scale_unless_others_read_them():
    def both(net):
        one, two = cg.relu(net.conv(X, 4)), cg.relu(net.conv(X, 5))
        return net.conv(cg.concat([one, two], 1), 3) + 0 * net.conv(two, 3)

    found = network(both)
    (joined,) = [x for x in found.bytes if x.op.name == "concat"]
    one, two = joined.operands
    assert found.bytes[one] is joined and found.bytes[two] is two and found.bytes[joined] is joined


@pytest.mark.parametrize("readers", ["p", "pp", "po", "op", "ps", "sp", "pm", "mp"])
def test_a_value_between_pointwise_ops_stays_float_if_it_has_one_reader_and_is_no_output(readers):
    """p: read by a pointwise op; m: by one that moves pixels; s: by a sum; o: it is an output itself."""
    net = Net()
    between = cg.tanh(cg.relu(net.conv(X, 8)))
    read = {
        "p": lambda i: net.conv(cg.sigmoid(between * (i + 2)), 4),
        "m": lambda i: net.conv(cg.max_pool2d(between, 2, 2), 4),
        "s": lambda i: net.linear(cg.mean(between, (2, 3)), 4),
        "o": lambda i: between,
    }
    found = network_of(prepare(tuple(read[kind](i) for i, kind in enumerate(readers)), (X,)))
    (kept,) = [x for x in found.order if x.op.name == "tanh"]
    assert (kept in found.bytes) == (len(readers) > 1)


def test_a_value_that_is_an_output_too_is_not_within_a_layer_whichever_output_it_is():
    net = Net()
    before = net.conv(X, 8)
    inner = cg.relu(before)
    last = net.conv(inner, 4)
    alone = network_of(prepare((last,), (X,)))
    for shown in (before, inner):
        found = [network_of(prepare(outputs, (X,))) for outputs in ((shown, last), (last, shown), (last, X, shown))]
        names = [[(x.name, x.last.op.name) for x in network.layers] for network in found]
        values = [[x.op.name if x.operands else "var" for x in network.bytes] for network in found]
        assert names[0] == names[1] == names[2] and values[0] == values[1] == values[2]
        assert (names[0] == [(x.name, x.last.op.name) for x in alone.layers]) == (shown is inner)


def test_layers_are_left_out_by_name_and_unknown_names_are_refused():
    found = network(lambda net: net.conv(cg.relu(net.conv(X, 8)), 4))
    first, second = found.layers
    less = found.without([first.name])
    assert less.layers == (second,) and less.all_layers == found.all_layers and X not in less.bytes
    assert found.without([]).bytes == found.bytes and found.without([first.name, second.name]).bytes == {}
    with pytest.raises(GraphError, match=f"has no layer 'no' to skip. Use one of {first.name}, {second.name}"):
        found.without(["no"])


def test_a_rebuilt_network_has_other_layers_and_values_in_their_places():
    found = network(lambda net: net.conv(cg.relu(net.conv(X, 8)), 4))
    value = np.random.default_rng(0).standard_normal(X.shape).astype("f4")
    seen = []

    def layer(x, operand):
        seen.append(x)
        return cg.zeros(x.end.shape, "float32") + cg.sum(operand) * 0

    new, (output,) = found.rebuilt(layer, lambda node, plain: plain + 1)
    assert seen == list(found.layers) and set(new) == set(found.order)
    (got,) = evaluate([output], {X: value})
    assert got.shape == found.outputs[0].shape and set(np.unique(got)) <= {0, 1}


def test_a_network_is_float_and_its_vars_have_values():
    quantised, small = cg.quantize(X, np.float32(0.1), 0, "uint8"), cg.Const(np.ones((3, 1, 1), "i1"))
    weights = cg.dequantize(small, np.float32(0.1), 0)
    for y in (quantised, cg.dequantize(quantised, np.float32(0.1), 0), X * weights, cg.quantize(X * 2, np.float32(1))):
        with pytest.raises(GraphError, match="the network is quantised already, at .*test_network.py"):
            prepare((X + 1.0, y), (X,))
    with pytest.raises(UnassignedError, match="w"):
        prepare((X * cg.Var((), name="w"),), (X,))


def test_a_chain_of_scales_ends_at_its_root():
    a, b, c = (cg.Var((), name=name) for name in "abc")
    assert root(a, {a: b, b: c, c: c}) is c and root(c, {c: c}) is c


def test_a_constant_becomes_bytes_where_it_is_joined_with_others_and_stays_float_in_a_product():
    net = Net()
    part, factor = net.normal(1, 3, 8, 8), net.normal(1, 8, 8, 8)
    found = network(lambda net: net.conv(cg.concat([part, cg.tanh(net.conv(X, 8) * factor)], 1), 4))
    (joined,) = [x for x in found.bytes if x.op.name == "concat"]
    constants = [x for x in found.bytes if not x.operands and x is not X]
    assert constants == [joined.operands[0]] and found.bytes[constants[0]] is joined


@pytest.mark.parametrize("first", ["concat", "product"])
def test_a_constant_that_is_joined_becomes_bytes_whichever_op_reads_it_first(first):
    net = Net()
    part = cg.Const(net.normal(1, 8, 8, 8), name="part")
    if first == "concat":
        y = cg.tanh(net.conv(cg.concat([part, cg.tanh(net.conv(X, 8))], 1), 8)) * part
    else:
        y = cg.concat([part, cg.tanh(net.conv(X, 8) * part)], 1)
    found = network_of(prepare((net.conv(y, 4),), (X,)))
    (constant,) = [x for x in found.order if x.name == "part"]
    readers = [x.op.name for x in found.order if any(y is constant for y in x.operands)]
    assert len(readers) == 2 and readers[0] == ("concat" if first == "concat" else "multiply")
    assert found.bytes[constant] is constant


def test_a_pointwise_value_that_is_only_repeated_stays_float_before_the_product():
    """A gate for each channel, read by a product through a broadcast; a gate that is an output too becomes bytes."""
    net = Net()
    image = cg.relu(net.conv(X, 8))
    gate = cg.sigmoid(cg.tanh(net.conv(cg.mean(image, (2, 3), keepdims=True), 8, 1)))
    score = net.conv(image * gate, 4)
    for outputs, is_kept in (((score,), False), ((score, gate), True)):
        found = network_of(prepare(outputs, (X,)))
        (kept,) = [x for x in found.order if x.op.name == "sigmoid"]
        assert (kept in found.bytes) == is_kept
