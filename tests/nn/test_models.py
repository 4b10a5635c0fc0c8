"""Known networks: published parameter counts, and the tensors of published memory tables."""

import csv

import pytest

import cgraph as cg
from nn import models
from nn.layer import Layer
from nn.mode import Mode
from nn.models.steps import usage_records
from tests.support.data import shared

# torchvision's tables; Keras' trainable values for MobileNet v1; Owl's example for lenet
PUBLISHED = {
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "resnet101": 44_549_160,
    "resnet152": 60_192_808,
    "resnet20": 269_722,
    "resnet56": 853_018,
    "vgg16": 138_357_544,
    "inception_v3": 23_834_568,
    "squeezenet1_0": 1_248_424,
    "squeezenet1_1": 1_235_496,
    "mobilenet_v1": 4_231_976,
    "mobilenet_v2": 3_504_872,
    "densenet121": 7_978_856,
    "densenet201": 20_013_928,
    "lenet": 6_434_634,
    "mlp": 266_610,
}
TABLED = ("mobilenet_v1", "mobilenet_v2", "deeplab_v3", "inception_v3", "posenet", "blazeface")


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_as_many_as_published(name):
    assert getattr(models, name)(None).size == PUBLISHED[name]


@pytest.mark.parametrize("name", [*PUBLISHED, "deeplab_v3", "posenet", "blazeface", "lstm_text", "gpt", "llama"])
def test_a_network_takes_a_batch_and_keeps_it(name):
    model = getattr(models, name)(None)
    for result in built(model, 2):
        assert result.shape[0] == 2


@pytest.mark.parametrize("name", ["resnet20", "vgg16", "inception_v3", "squeezenet1_1", "mobilenet_v2", "densenet121"])
def test_every_weight_of_a_network_gets_a_gradient(name):
    model = getattr(models, name)(None)
    (scores,) = built(model, 2, Mode(training=True))
    weights = list(model.parameters().values())
    gradients = cg.gradient(cg.sum(cg.square(scores)), weights)
    for x, g in zip(weights, gradients):
        assert g.spec == x.spec
        assert reaches(g, scores), f"{x.name} has no path to the loss"


@pytest.mark.parametrize("name", [*PUBLISHED, "deeplab_v3", "posenet", "blazeface", "lstm_text", "gpt", "llama"])
def test_every_layer_of_a_network_knows_the_mode(name):
    """Training updates the statistics of every norm, and inference those of none."""
    model = getattr(models, name)(None)
    others = set(model.variables().values()) - set(model.parameters().values())
    for mode in (Mode(training=True), Mode()):
        built(model, 2, mode)
        assert set(mode.updates) - {mode.key} == (others if mode.training else set())


def reaches(g: cg.Node, scores: cg.Node) -> bool:
    """Does a gradient depend on the result? A weight that the loss does not use has a gradient of constant zeros."""
    waiting, seen = [g], set()
    while waiting:
        node = waiting.pop()
        if node is scores:
            return True
        if node not in seen:
            seen.add(node)
            waiting.extend(node.operands)
    return False


@pytest.mark.parametrize("name", TABLED)
def test_tensors_and_their_usage_are_those_of_the_published_tables(name):
    with shared(f"planner/records/{name}.csv").open() as file:
        want = [(int(r["first_op"]), int(r["last_op"]), int(r["size_bytes"])) for r in csv.DictReader(file)]
    classes = {} if name in ("deeplab_v3", "posenet", "blazeface") else {"classes": 1001}
    outputs = built(getattr(models, name)(None, **classes), 1)
    assert [record[:3] for record in usage_records(outputs)] == want


def built(model: Layer, n: int, mode: Mode | None = None) -> tuple[cg.Node, ...]:
    assert model.samples is not None
    found = model(*(cg.Var((n, *sample.shape), sample.dtype) for sample in model.samples), mode=mode)
    return found if isinstance(found, tuple) else (found,)
