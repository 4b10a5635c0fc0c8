"""Quantised networks: on bytes throughout, near the floats, what their ops mean; layers that stay float; refusals."""

from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.errors import GraphError, InputError, UnassignedError
from cgraph.ir.traverse import post_order
from cgraph.ops.physical.integer import IntegerConv, IntegerMatmul
from cgraph.passes.integers.compute_integers import compute_integers
from cgraph.quantiser import quantise
from cgraph.quantiser.network import network_of, prepare
from cgraph.quantiser.observe import limits, ranges_of
from cgraph.quantiser.quantise import Choices, answers_of, deprecated_labels, sizes_of_weights, tune
from cgraph.quantiser.ranges import weights_of
from cgraph.quantiser.report import Answers, Likeness
from cgraph.quantiser.simulate import Simulation, averages, mean_of_channels
from cgraph.running.samples import sample_runs
from cgraph.system.progress import silent
from tests.quantiser.nets import SHAPE, Net, every_group, pictures
from tests.support.tolerance import assert_near, near


def kinds(outputs):
    return [type(x.op) for x in post_order(compute_integers(outputs))]


def power_ratio(got, want):
    """Decibels of a signal over what differs."""
    return 10 * np.log10(np.square(want).sum() / np.square(got - want).sum())


@pytest.mark.parametrize("options", [{}, {"images": "int8"}, {"symmetric": True}, {"method": "percentile"}])
def test_every_layer_becomes_bytes_and_scores_stay_near(options):
    x, y = every_group()
    found = quantise(y, x, pictures(), **options)
    met = kinds(found.outputs)
    assert (met.count(IntegerConv), met.count(IntegerMatmul)) == (8, 2)
    assert not any(node.op.name in ("conv2d", "matmul") for node in post_order(compute_integers(found.outputs)))
    other = pictures(1, seed=5)[0]
    got, want = found.compile()(other)[0], cg.compile(y, [x])(other)
    assert power_ratio(np.log(got), np.log(want)) > 20


def test_what_runs_is_what_the_graph_means():
    x, y = every_group()
    found = quantise(y, x, pictures(), correct=False)
    value = pictures(1, seed=5)[0]
    (want,) = evaluate(compute_integers(found.outputs), {x: value})
    assert_near(found.compile()(value)[0], want, "float32 sums")


def test_the_report_is_what_was_measured():
    x, y = every_group()
    samples = pictures(3)
    wanted = np.arange(6) % 10
    found = quantise(y, x, samples, wanted)
    floats, bytes_ = cg.compile(y, [x]), found.compile()
    want, got = (np.concatenate([np.asarray(f(v)).reshape(2, 10) for v in samples]) for f in (floats, bytes_))
    report = found.report
    assert report.likeness.agreement == (want.argmax(1) == got.argmax(1)).mean()
    assert report.likeness.decibels == near(power_ratio(got.astype("f8"), want.astype("f8")), "float32 trainings")
    assert (report.float_right, report.likeness.right) == tuple((v.argmax(1) == wanted).mean() for v in (want, got))
    assert report.plan == (floats.nbytes, bytes_.nbytes) and report.plan[1] < 0.5 * report.plan[0]
    assert report.weights[1] < 0.4 * report.weights[0]
    assert "10 layers quantised" in str(report) and report.facts()["layers"] == 10


def test_biases_are_corrected_until_channels_have_the_means_of_the_floats():
    net, x = Net(), cg.Var(SHAPE, name="image")
    first = cg.relu(net.conv(x, 16))
    y = net.conv(first, 8)
    samples = pictures(6)
    far = []
    for correct in (False, True):
        function = quantise(y, x, samples, correct=correct).compile()
        floats = cg.compile(y, [x])
        means = [np.mean([f(v) if f is floats else f(v)[0] for v in samples], (0, 1, 3, 4)) for f in (floats, function)]
        far.append(np.abs(means[0] - means[1]).max())
    assert far[1] < 0.2 * far[0]


def test_batch_norms_and_factors_of_channels_go_into_filters():
    net, x = Net(), cg.Var((1, 4, 6, 6), name="image")
    filters = net.normal(5, 4, 3, 3)
    y = (cg.conv2d(x, filters, 1, 1) * net.normal(5, 1, 1) - net.normal(5, 1, 1)) / np.float32(3)
    network = network_of(prepare((cg.relu(y),), (x,)))
    (layer,) = network.layers
    value = net.normal(1, 4, 6, 6)
    got = cg.conv2d(x, layer.weights, 1, 1) + layer.bias[:, None, None]
    assert_near(cg.compile(got, [x])(value), cg.compile(y, [x])(value), "float32 small networks")
    assert layer.last is network.outputs[0]


def test_a_sum_that_somebody_else_reads_is_not_folded():
    net, x = Net(), cg.Var((1, 4, 6, 6), name="image")
    plain = cg.conv2d(x, net.normal(5, 4, 3, 3))
    network = network_of(prepare((plain + net.normal(5, 1, 1), plain * 2), (x,)))
    assert [layer.end for layer in network.layers] == [plain] and not network.layers[0].bias.any()


def test_ranges_are_those_of_numpy():
    net, x = Net(), cg.Var(SHAPE, name="image")
    nodes = [x, cg.relu(net.conv(x, 5)), cg.sin(x)]
    found = limits(nodes, [x], [(v,) for v in pictures()], lambda *_: None)
    function = cg.compile(nodes, [x])
    runs = [function(v) for v in pictures()]
    for i, node in enumerate(nodes):
        assert found[node] == (min(r[i].min() for r in runs), max(r[i].max() for r in runs))


def test_layers_that_cost_much_stay_float_until_answers_agree():
    net, x = Net(), cg.Var((4, 16), name="x")
    scales = np.ones(16, "float32")
    scales[0] = 1e6  # one column so large that bytes leave nothing of the others
    hidden = cg.relu(net.linear(x * scales, 16))
    mixed = net.normal(16, 16)
    mixed[0] = 0
    y = net.linear(cg.relu((x * scales) @ mixed + net.normal(16)), 5) + 0 * cg.sum(hidden)
    samples = [net.normal(4, 16) for _ in range(20)]
    bad = quantise(y, x, samples, correct=False)
    found = quantise(y, x, samples, correct=False, agreement=0.95)
    assert bad.report.likeness.agreement < 0.9 and bad.report.table == ()
    assert found.report.likeness.agreement >= 0.95 and found.report.layers >= 1
    assert found.report.skipped == tuple(x.layer for x in found.report.table if x.skipped) != ()
    assert found.report.table[0].likeness.decibels == min(x.likeness.decibels for x in found.report.table)
    marked = [line.endswith("  (stays float)") for line in found.report.table_lines()[1:]]
    assert marked == [x.skipped for x in found.report.table] and True in marked


def test_skipped_layers_keep_their_floats():
    x, y = every_group()
    layers = network_of(prepare((y,), (x,))).layers
    names = [layer.name for layer in layers]
    found = quantise(y, x, pictures(2), skip=tuple(names[1:3]), correct=False)
    assert found.report.weights == sizes_of_weights(layers, [layers[0], *layers[3:]])
    assert sum(node.op.name == "conv2d" for node in post_order(compute_integers(found.outputs))) == 2
    assert found.report.skipped == tuple(names[1:3]) and found.report.layers == len(names) - 2


def test_layers_are_called_by_their_weights():
    x = cg.Var((1, 3, 8, 8), name="image")
    w = cg.Var((4, 3, 3, 3), name="stem").assign(Net().normal(4, 3, 3, 3))
    y = cg.conv2d(cg.pad(cg.conv2d(x, w), [(0, 0), (0, 0), (1, 1), (1, 1)])[:, :3], w)
    network = network_of(prepare((y,), (x,)))
    assert [layer.name for layer in network.layers] == ["stem", "stem.2"]


def test_values_that_only_scores_come_after_stay_float():
    net, x = Net(), cg.Var((2, 12), name="x")
    hidden = cg.tanh(net.linear(x, 8))
    scores = cg.softmax(net.linear(hidden, 5) * 2)
    network = network_of(prepare((scores,), (x,)))
    assert list(network.bytes) == [x, network.layers[0].end, network.layers[1].x]


SCORES = [np.array(rows, "f4") for rows in ([[1, 3], [2, 0]], [[0, 1], [5, 4], [7, 8]])]
LABELS = np.array([1, 0, 0, 0, 1])
FORMS = {
    "array": LABELS, "list": LABELS.tolist(), "column": LABELS[:, None], "row": LABELS[None],
    "bytes": LABELS.astype("i1"), "strided": np.repeat(LABELS, 2)[::2], "none": None,
}  # fmt: skip


@pytest.mark.parametrize("bias", [[0, 0, 0, 0], [0, 9, 0, 0], [-9, 5, 7, 0], [1, -9, 5, 3]])
def test_a_bias_is_part_of_the_bytes_whatever_channels_have_none(bias):
    net, x = Net(), cg.Var(SHAPE, name="image")
    y = cg.conv2d(x, net.normal(4, 3, 1, 1)) + np.float32(bias)[:, None, None]
    found = quantise(y, x, pictures(), correct=False)
    assert found.report.likeness.decibels > 25
    names = [node.op.name for node in post_order(found.outputs)]
    assert names.count("add") == any(bias)


@pytest.mark.parametrize("form", FORMS)
def test_right_answers_are_counted_for_labels_of_any_shape(form):
    """One label for each sample of two runs, of two samples and of three; four are right."""
    answers = answers_of(lambda x: [x], [(x,) for x in SCORES], FORMS[form], silent)
    alike = answers.like(lambda x: [-x], [(x,) for x in SCORES])
    assert (answers.right, alike.right) == ((None, None) if form == "none" else (4 / 5, 1 / 5))
    assert alike.agreement == 0


@pytest.mark.parametrize("count", [0, 1, 4, 6])
def test_there_is_one_label_for_each_sample(count):
    with pytest.raises(InputError, match=f"got {count} labels for 5 samples. Pass one label for each sample"):
        answers_of(lambda x: [x], [(x,) for x in SCORES], [0] * count, silent)


REFUSED = {
    "at least one sample": lambda x, y: quantise(y, x, []),
    "2 arrays for 1 inputs": lambda x, y: quantise(y, x, [(pictures(1)[0], 1)]),
    "method is 'best'": lambda x, y: quantise(y, x, pictures(), method="best"),
    "images is int16. Use": lambda x, y: quantise(y, x, pictures(), images="int16"),
    "agreement is 2. Pass a share": lambda x, y: quantise(y, x, pictures(), agreement=2),
    "agreement is -0.01. Pass a share": lambda x, y: quantise(y, x, pictures(), agreement=-0.01),
    "has no layer 'a'": lambda x, y: quantise(y, x, pictures(), skip=("a",)),
    "quantised already": lambda x, y: quantise(quantise(y, x, pictures(1), correct=False).outputs, x, pictures()),
    "no convolution": lambda x, y: quantise(cg.sin(x), x, pictures()),
    "reach from": lambda x, y: quantise(y, x, [np.full(SHAPE, np.inf, "float32")]),
    "got 3 labels for 2": lambda x, y: quantise(y, x, pictures(1), [1, 2, 3]),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_is_refused(text):
    x, y = every_group()
    with pytest.raises((InputError, GraphError), match=text):
        REFUSED[text](x, y)


def test_a_var_without_a_value_is_named():
    x, w = cg.Var((2, 4), name="x"), cg.Var((4, 4), name="weights")
    with pytest.raises(UnassignedError, match="weights"):
        quantise(x @ w, x, [np.ones((2, 4), "float32")])


def simulation_of_two_layers():
    """A simulation of two convolutions, and its samples."""
    net, x = Net(), cg.Var(SHAPE, name="image")
    y = net.conv(cg.relu(net.conv(x, 16)), 8)
    samples = sample_runs(pictures(2), (x,), "quantising")
    network, form = network_of(prepare((y,), (x,))), Choices().form
    ranges = ranges_of(network, (x,), samples, "minmax", silent)
    quanta = {node: form.quantum(ranges[root]) for node, root in network.bytes.items()}
    weights = {layer: weights_of(layer, quanta[layer.x]) for layer in network.layers}
    return Simulation(network, (x,), quanta, form, weights), samples


def test_a_correction_of_biases_does_not_depend_on_those_before():
    simulation, samples = simulation_of_two_layers()
    network, rounds = simulation.network, []
    for layers in (network.layers, network.layers[1:], network.layers):
        simulation.correct(layers, samples, silent)
        rounds.append([simulation.biases[layer] for layer in network.layers])
    for before, after in zip(rounds[0], rounds[2]):
        np.testing.assert_array_equal(before, after)


class Told(Answers):
    """Answers whose likeness is told by the layers that are quantised; it notes how many samples there are."""

    def like(self, run, samples):
        return run(len(list(samples)), len(self.outputs), self.labels is None)


class Layers:
    """Stands for a simulation of five layers. The more of the costly ones are quantised, the less answers agree."""

    cost = {"a": 1.0, "b": 7.0, "c": 3.0, "d": 5.0, "e": 2.0}

    def __init__(self):
        self.network = SimpleNamespace(layers=[SimpleNamespace(name=name) for name in self.cost])
        self.outputs, self.present, self.calls = "outputs", (), []

    def choose(self, layers):
        self.present = tuple(x.name for x in layers)

    def correct(self, layers, samples, tell):
        self.calls.append(("correct", tuple(x.name for x in layers), len(samples)))

    def function(self, of, frozen):
        assert of == "outputs"

        def run(samples, runs, unlabelled):
            self.calls.append((frozen, self.present, samples, runs, unlabelled))
            loss = sum(self.cost[name] for name in self.present)
            return Likeness(50 - loss, 1 - loss / 32)

        return run


@pytest.mark.parametrize("correct", [True, False])
@pytest.mark.parametrize("agreement", [None, 0.0, 0.4375, 0.438, 0.65625, 0.66, 0.96875, 1.0])
@pytest.mark.parametrize("sensitivity", [True, False])
def test_the_costliest_layers_stay_float_one_by_one_until_the_share_of_answers_is_met(correct, agreement, sensitivity):
    layers, samples = Layers(), [(i,) for i in range(20)]
    choices = Choices(correct=correct, agreement=agreement, sensitivity=sensitivity)
    table = tune(layers, samples, choices, Told(tuple([i] for i in range(20)), np.arange(20)), silent)
    listed = agreement is not None or sensitivity
    assert [x.layer for x in table] == (["b", "d", "c", "e", "a"] if listed else [])
    # 18, 11, 6, 3 and 1 of 32 answers are lost with 0, 1, 2, 3 and 4 layers left float
    skipped = {None: 0, 0.0: 0, 0.4375: 0, 0.438: 1, 0.65625: 1, 0.66: 2, 0.96875: 4, 1.0: 5}[agreement]
    assert [x.skipped for x in table] == ([True] * skipped + [False] * (5 - skipped) if listed else [])
    alone = [(False, (name,), 16, 16, True) for name in "abcde"] if listed else []
    rounds = [tuple(x for x in "abcde" if x not in ("b", "d", "c", "e", "a")[:n]) for n in range(skipped + 1)]
    rest = []
    for names in rounds:
        rest += [("correct", names, 16)] if correct else []
        rest += [(True, names, 20, 20, False)] if agreement is not None and names else []
    assert layers.calls == alone + rest


def test_options_of_compile_reach_it():
    x, y = every_group()
    found = quantise(y, x, pictures(1), correct=False)
    plain = found.compile()
    assert found.compile(memory="one_each").nbytes > plain.nbytes
    with pytest.raises(GraphError, match="there is no order 'sideways'"):
        found.compile(order="sideways")
    with pytest.raises(TypeError, match="memori"):
        found.compile(memori="one_each")


def test_each_stage_is_told_from_its_first_to_its_last_sample():
    net, x = Net(), cg.Var(SHAPE, name="image")
    told = []
    quantise(
        net.conv(cg.relu(net.conv(x, 4)), 5), x, pictures(3), method="percentile", sensitivity=True, agreement=0.0,
        tell=lambda stage, done, size: told.append((stage, done, size)),
    )  # fmt: skip
    stages = list(dict.fromkeys(stage for stage, _, _ in told))
    assert stages == ["floats", "ranges", "histograms", "sensitivity", "means", "biases", "agreement", "check"]
    for stage in stages:
        size = 2 if stage in ("sensitivity", "biases") else 3
        assert [(n, all_) for name, n, all_ in told if name == stage][-1] == (size, size), stage


def test_a_row_is_a_bias_from_either_side_and_a_column_or_a_matrix_is_not():
    net, x = Net(), cg.Var((4, 6), name="x")
    product, row = x @ net.normal(6, 4), net.normal(4)
    for added, folded in (
        (product + row, True), (row + product, True), (product + row[None], True),
        (product + row[:, None], False), (product + net.normal(4, 4), False), (product - row, False),
    ):  # fmt: skip
        (layer,) = network_of(prepare((added,), (x,))).layers
        assert (layer.end is not layer.core) == folded
        np.testing.assert_array_equal(layer.bias, row if folded else np.zeros(4))


def test_a_convolution_keeps_its_strides_pads_dilations_and_groups():
    net, x = Net(), cg.Var((2, 4, 15, 14), name="image")
    filters = net.normal(6, 2, 3, 2, size=0.3)
    y = cg.relu(cg.conv2d(x, filters, (2, 1), (1, 0, 2, 3), (1, 3), 2) + net.normal(6, 1, 1))
    samples = [net.normal(*x.shape) for _ in range(2)]
    found = quantise(y, x, samples, sensitivity=True)
    assert found.report.layers == 1 and found.report.likeness.decibels > 30
    assert found.report.table[0].likeness.decibels > 30
    np.testing.assert_array_equal(found.outputs[0].shape, y.shape)


def test_means_are_those_of_each_channel_of_images_and_of_rows():
    net = Net()
    for y, axes in (
        (net.conv(cg.Var((2, 3, 5, 4), name="image"), 6), (0, 2, 3)),
        (net.linear(cg.Var((5, 4), name="x"), 3), (0,)),
        (net.linear(cg.Var((2, 5, 4), name="x"), 3), (0, 1)),
    ):
        (x,) = [node for node in post_order((y,)) if isinstance(node, cg.Var)]
        network = network_of(prepare((y,), (x,)))
        value = net.normal(*x.shape)
        got = cg.compile(mean_of_channels(network.layers[0], y), [x])(value)
        assert_near(got, cg.compile(y, [x])(value).mean(axes), "float32 formulas near zero")


def test_a_network_of_which_no_layer_is_left_is_refused():
    x, y = every_group()
    names = tuple(layer.name for layer in network_of(prepare((y,), (x,))).layers)
    with pytest.raises(GraphError, match="no convolution of images and no product .* or fewer names in skip="):
        quantise(y, x, pictures(1), skip=names)


def test_two_inputs_and_two_outputs_keep_their_order():
    net, a, b = Net(), cg.Var((3, 4), name="a"), cg.Var((3, 6), name="b")
    outputs = [net.linear(cg.relu(net.linear(b, 5)), 2), net.linear(a, 3)]
    samples = [(net.normal(3, 4), net.normal(3, 6)) for _ in range(4)]
    found = quantise(outputs, [a, b], samples, correct=False)
    assert found.inputs == (a, b) and found.report.layers == 3
    got, want = found.compile()(*samples[1]), cg.compile(outputs, [a, b])(*samples[1])
    for x, y in zip(got, want, strict=True):
        assert x.shape == y.shape and power_ratio(x, y) > 20


@pytest.mark.parametrize("chosen", [(), (0,), (1,), (0, 1)])
def test_a_simulation_quantises_the_chosen_layers_and_what_they_read_alone(chosen):
    simulation, samples = simulation_of_two_layers()
    layers = simulation.network.layers
    simulation.correct(layers, samples, silent)
    simulation.choose([layers[i] for i in chosen])
    for i, x in enumerate(layers):
        weights = simulation.integers[x].floats if i in chosen else x.weights
        bias = simulation.biases[x] if i in chosen else x.bias
        assert not np.array_equal(simulation.biases[x], x.bias)
        np.testing.assert_array_equal(simulation.weights[x].value, weights)
        np.testing.assert_array_equal(simulation.bias_vars[x].value, bias)
    read = simulation.network.without(x.name for i, x in enumerate(layers) if i not in chosen).bytes
    assert [bool(flag.value) for flag in simulation.flags.values()] == [node in read for node in simulation.flags]
    if not chosen:
        (got,) = simulation.function(simulation.outputs, True)(*samples[0])
        want = cg.compile(simulation.network.outputs, simulation.inputs)(*samples[0])[0]
        assert_near(got, want, "float32 small networks")


def test_averages_are_of_all_samples_for_each_output_and_in_double_precision():
    samples = [(np.float32([2**24, 1]), np.float32([3])), (np.float32([1, 2]), np.float32([4]))]
    found = averages(lambda x, y: [x, x * y], samples)
    assert [x.tolist() for x in found] == [[(2**24 + 1) / 2, 1.5], [(3 * 2**24 + 4) / 2, 5.5]]
    assert {x.dtype.name for x in found} == {"float64"}


def test_labels_may_have_the_name_that_they_had():
    options = {"wanted": [1, 2], "images": "int8"}
    with pytest.warns(DeprecationWarning, match="Use labels="):
        assert deprecated_labels(options, None) == [1, 2]
    assert options == {"images": "int8"} and deprecated_labels(options, [3]) == [3]


@pytest.mark.parametrize("correct", [True, False])
def test_all_layers_stay_float_where_no_other_choice_has_the_share_of_answers(correct, monkeypatch):
    monkeypatch.setattr(Answers, "like", lambda *_: Likeness(1.0, 0.5))
    x, y = every_group()
    found = quantise(y, x, pictures(), correct=correct, agreement=0.75)
    assert found.report.layers == 0 and len(found.report.skipped) == len(found.report.table) > 2
    assert not any(node.op.name == "quantize" for node in post_order(found.outputs))
