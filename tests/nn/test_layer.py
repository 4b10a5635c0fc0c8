"""A model as a tree: paths, sharing, summary, and errors."""

import inspect
import io
from contextlib import nullcontext

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.ir.origin import named
from nn.progress import PlainBar, progress_bar, rich_bar, seconds_left
from nn.summary import rows_of
from tests.support.tolerance import assert_near, near


def test_parameters_are_named_by_path():
    model = nn.models.resnet20(None)
    names = list(model.variables())
    assert names[0] == "stem.conv.weight"
    assert "groups.2.0.second.norm.variance" in names
    assert "groups.2.0.second.norm.variance" not in model.parameters()
    assert len(set(names)) == len(names)
    assert model.layers()["groups.1.2.first"] is model.groups[1][2].first


def test_a_layer_at_two_places_has_its_first_path():
    shared = nn.Linear(3, 3)
    model = nn.Sequential(nn.Flatten(), shared, nn.Activation("relu"), shared)
    layers = model.layers()
    assert layers["parts.1"] is shared and "parts.3" not in layers and layers[""] is model
    assert list(model.variables()) == ["parts.1.weight", "parts.1.bias"]


def test_parameters_are_called_by_their_paths():
    model = nn.models.mlp(None, (6, 4, 2))
    with pytest.raises(cg.UnassignedError, match=r"parts\.1\.weight float32\[6,4\]"):
        model(cg.Var((1, 6)).assign(np.zeros((1, 6), np.float32))).eval()


def test_a_layer_cannot_be_changed():
    layer = nn.Linear(2, 3)
    with pytest.raises(AttributeError):
        layer.inputs = 4


def test_summary_counts_multiply_adds():
    rows, macs = rows_of(nn.models.lenet(None))
    by_path = {row.path: row for row in rows}
    assert by_path["parts.1"].macs == 28 * 28 * 32 * 25
    assert by_path["parts.5"].macs == 14 * 14 * 32 * 1024
    assert macs == sum(row.macs for row in rows)
    assert by_path["parts.3"].shapes == ((1, 32, 14, 14),)


@pytest.mark.parametrize(
    ("name", "millions"),
    # multiply-adds as their papers and torchvision state them
    [("resnet18", 1814), ("resnet50", 4089), ("vgg16", 15470), ("mobilenet_v2", 301), ("squeezenet1_1", 349)],
)
def test_networks_cost_what_is_published(name, millions):
    _, macs = rows_of(getattr(nn.models, name)(None))
    assert macs / 1e6 == near(millions, "published multiply-adds")


def test_summary_is_a_table():
    lines = nn.summary(nn.models.mlp(None, (6, 4, 2))).splitlines()
    assert lines[-1].split()[-2:] == ["38", "32"]
    assert len({len(line) for line in lines[:-1]}) == 1


def test_initialisers_have_their_variance():
    rng = np.random.default_rng(0)
    shape = (300, 200)
    assert nn.init.HE_NORMAL(shape, rng).std() == near((2 / 300) ** 0.5, "drawn deviations")
    assert nn.init.LECUN_UNIFORM(shape, rng).std() == near((1 / 300) ** 0.5, "drawn deviations")
    assert nn.init.GLOROT_NORMAL(shape, rng).std() == near((1 / 250) ** 0.5, "drawn deviations")
    assert np.abs(nn.init.STANDARD(shape, rng)).max() == near(300**-0.5, "drawn extremes")
    assert np.abs(nn.init.TANH(shape, rng)).max() == near((6 / 500) ** 0.5, "drawn extremes")
    filters = (64, 32, 3, 3)
    assert nn.init.HE_NORMAL(filters, rng).std() == near((2 / 288) ** 0.5, "drawn deviations")
    truncated = nn.init.TruncatedNormal(1.0)(shape, rng)
    assert np.abs(truncated).max() <= 2
    assert nn.init.Gaussian(3.0, 0.5)(shape, rng).mean() == near(3, "drawn means")
    assert nn.init.Uniform(2.0, 4.0)(shape, rng).mean() == near(3, "drawn means")
    tall = nn.init.Orthogonal(2.0)(shape, rng)
    assert_near(tall.T @ tall, 4 * np.eye(200), "float32 coordinates")
    np.testing.assert_array_equal(nn.init.Identity(2.0)((2, 3), rng), [[2, 0, 0], [0, 2, 0]])
    np.testing.assert_array_equal(nn.init.Custom(lambda s, r: np.ones(s))((2,), rng), [1, 1])


def test_weights_can_be_zeros():
    model = nn.models.mlp("zeros", (6, 4, 2))
    assert all((x.value == 0).all() for x in model.variables().values())
    with pytest.raises(ValueError, match="Pass a seed, 'zeros' or None"):
        nn.models.mlp("ones", (6, 4, 2))


def test_progress_with_rich():
    console = pytest.importorskip("rich.console").Console(file=io.StringIO(), force_terminal=True, width=100)
    bar = rich_bar(2, 10, console)
    bar.show(5, 0.25, 0.001)
    bar.close()
    assert "5/10" in console.file.getvalue()
    assert "loss 0.2500  rate 1.00e-03" in console.file.getvalue()


def test_progress_says_loss_rate_and_time_left():
    stream = io.StringIO()
    bar = PlainBar(0, 10, stream)
    bar.show(10, 0.25, 0.001)
    bar.close()
    assert "step 10/10  loss 0.2500  rate 1.00e-03  0 s left" in stream.getvalue()
    assert seconds_left(10.0, 5, 65) == "2 min 10 s"
    assert seconds_left(0.0, 0, 5) == "?"
    progress_bar(0, 10, False).show(1, 0.0, 0.0)


def test_weights_are_those_of_the_seed_0_where_none_is_named():
    drawn = [nn.initialise(nn.Sequential(nn.Input((5,)), nn.Linear(5, 4)), *seed) for seed in ((), (0,), (1,))]
    default, zero, one = ([x.value for x in layer.variables().values()] for layer in drawn)
    assert all((a == b).all() for a, b in zip(default, zero, strict=True))
    assert any((a != b).any() for a, b in zip(default, one, strict=True))


class Tree(nn.Layer):
    """Layers and Parameters in tuples within tuples, and a layer that occurs twice."""

    pairs: tuple = ()
    own: nn.Parameter = None
    again: nn.Layer = None

    def __post_init__(self):
        first, second = nn.Linear(2, 3), nn.BatchNorm(3)
        self.hold(pairs=((first, second), (nn.Parameter((4,)),)), own=nn.Parameter((5,), trained=False), again=first)


def test_paths_count_the_places_in_tuples_of_tuples():
    tree = Tree()
    norm = [f"pairs.0.1.{name}" for name in ("scale", "shift", "mean", "variance")]
    assert list(tree.variables()) == ["pairs.0.0.weight", "pairs.0.0.bias", *norm, "pairs.1.0", "own"]
    assert list(tree.parameters()) == ["pairs.0.0.weight", "pairs.0.0.bias", *norm[:2], "pairs.1.0"]
    assert list(tree.layers()) == ["", "pairs.0.0", "pairs.0.1"] and tree.size == 6 + 3 + 3 + 3 + 4


@pytest.mark.parametrize(
    ("frozen", "count"),
    [((), 5), (("pairs.0",), 1), (("pairs.0.0", "pairs.1"), 2), (("pairs.0.1.sc",), 4), (("own", "0"), 5), (("",), 0)],
)
def test_parameters_below_any_of_several_paths_are_left_out(frozen, count):
    tree = Tree()
    left = tree.parameters(frozen)
    assert len(left) == count and not any(path.startswith(x) for path in left for x in frozen)
    assert all(tree.parameters()[path] is x for path, x in left.items())


def test_a_mapped_tree_has_the_same_paths_and_shares_what_was_shared():
    tree = nn.initialise(Tree(), 0)
    copy = nn.layer.map_parameters(tree, lambda x: nn.Parameter(x.shape, trained=x.trained).assign(x.value + 1))
    assert copy.pairs[0][0] is copy.again is not tree.again and type(copy) is Tree
    assert copy.parameters().keys() == tree.parameters().keys()
    for path, x in tree.variables().items():
        other = copy.variables()[path]
        assert other is not x and (other.value == x.value + 1).all()
    assert copy.pairs[0][1].channels == 3


def test_first_values_go_to_those_without_one_and_everything_gets_its_name():
    tree = Tree()
    tree.again.bias.assign(np.array([1.0, 2, 3], "f4"))
    assert nn.initialise(tree, None) is tree
    assert [x.name for x in tree.variables().values()] == list(tree.variables())
    assert [path for path, x in tree.variables().items() if x.is_assigned] == ["pairs.0.0.bias"]
    nn.initialise(tree, 7)
    assert tree.again.bias.value.tolist() == [1, 2, 3] and all(x.is_assigned for x in tree.variables().values())
    assert tree.pairs[0][1].variance.value.tolist() == [1, 1, 1]


def test_a_first_value_that_fails_leaves_all_parameters_empty():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2, start=nn.init.Custom(lambda shape, rng: np.ones((9,)))))
    with pytest.raises(cg.CgraphError):
        nn.initialise(model, 0)
    assert not any(x.is_assigned for x in model.variables().values())


@pytest.mark.parametrize(
    ("kinds", "dtype", "want"),
    [
        (("float32",), "float64", "float32"), (("float32",), "float16", "float16"), (("float32",), "int64", "int64"),
        (("float32", "float64"), "float64", "float64"), (("float64",), "float32", "float32"),
        ((), "float64", "float64"), ((), "uint8", "uint8"), (("float32",), "float32", "float32"),
        (("float32",), "bool", "bool"),
    ],
)  # fmt: skip
def test_only_float64_is_narrowed_and_only_for_a_network_without_it(kinds, dtype, want):
    class Kinds(nn.Layer):
        def variables(self):
            return {kind: cg.Var((2,), kind) for kind in kinds}

    assert Kinds().input_dtype(np.dtype(dtype)) == np.dtype(want) == Kinds().input_dtype(dtype)


def test_nodes_are_named_by_path_and_those_of_the_whole_by_the_part_of_the_graph_around_it():
    inner = nn.Sequential(nn.Lambda(cg.exp), nn.Lambda(cg.tanh))
    model = nn.Residual(inner)
    for around, whole in ((None, "Residual"), ("loss", "loss")):
        x = cg.Var((2, 3))
        with named(around) if around else nullcontext():
            total = model(x)
        tanh = next(y for y in total.operands if y is not x)
        names = [y.origin.name for y in (total, tanh, tanh.operands[0])]
        assert names == [whole, "body.parts.1", "body.parts.0"]


SWITCHED = {
    x: [name for name, kind in inspect.get_annotations(x).items() if kind is bool]
    for x in {getattr(nn.layers, name) for name in nn.layers.__all__}
    if isinstance(x, type)
}


@pytest.mark.parametrize("layer", sorted(SWITCHED, key=lambda x: x.__name__), ids=lambda x: x.__name__)
def test_switches_of_a_layer_and_its_bases_are_true_or_false_by_name_and_by_position(layer):
    switches = [name for base in layer.__mro__ for name in SWITCHED.get(base, [])]
    for name in switches:
        with pytest.raises(cg.InputError, match=f"^{layer.__name__}.{name} is 2. Pass True or False"):
            layer(**{name: 2})
        first = layer._fields[: layer._fields.index(name)]
        with pytest.raises(cg.InputError, match=f"^{layer.__name__}.{name} is 2. Pass True or False"):
            layer(*[False] * len(first), 2)


def test_a_layer_outside_the_tree_leaves_the_paths_of_the_members():
    class Around(nn.Layer):
        first: nn.Layer
        second: nn.Layer

        def build(self, *xs, mode):
            return nn.Sequential(self.second, nn.Lambda(cg.exp))(self.first(*xs, mode=mode), mode=mode)

    power = Around(nn.Lambda(cg.tanh), nn.Lambda(cg.sin))(cg.Var((2,)))
    (second,) = power.operands
    assert [x.origin.name for x in (power, second, *second.operands)] == ["parts.1", "second", "first"]


def test_a_parameter_at_two_places_is_mapped_once():
    class Pair(nn.Layer):
        one: nn.Parameter
        other: nn.Parameter

    shared = nn.Parameter((2,))
    calls = []
    copy = nn.layer.map_parameters(Pair(shared, shared), lambda x: calls.append(x) or nn.Parameter(x.shape))
    assert copy.one is copy.other is not shared and len(calls) == 1


def test_weights_of_equal_layers_differ_by_their_paths_alone():
    model = nn.initialise(nn.Sequential(*(nn.Linear(3, 3) for _ in range(3))), 0)
    first, second, third = (x.weight.value for x in model.parts)
    assert (first != second).any() and (second != third).any() and (first != third).any()
    alone = nn.initialise(nn.Sequential(nn.Activation("relu"), nn.Linear(3, 3)), 0)
    np.testing.assert_array_equal(alone.parts[1].weight.value, second)
