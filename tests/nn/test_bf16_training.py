"""Training with products of bfloat16, on emulated pairs and tiles: one result however it runs, near float32's."""

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.kernels.target import target_named
from cgraph.record import replace
from nn import optim
from nn.losses import cross_entropy
from tests.support.emulated import PairsEngine, TilesEngine

ENGINES = {"pairs": PairsEngine, "tiles": TilesEngine}
every_engine = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
RNG = np.random.default_rng(0)
PICTURES = RNG.standard_normal((96, 3, 8, 8)).astype("f4")
CLASSES = (PICTURES[:, 0].mean((1, 2)) > 0).astype("i4") + (PICTURES[:, 1].mean((1, 2)) > 0)
BATCH = 48


def network(seed=0):
    """Convolutions with and without a stride, batch norms, dropout, products."""

    def layer(c, k, stride=1):
        conv = nn.Conv2d(c, k, 3, stride=stride, pad=1, use_bias=False)
        return conv, nn.BatchNorm(k), nn.Activation("relu")

    inner = *layer(3, 16), *layer(16, 16), *layer(16, 32, 2)
    rest = nn.Flatten(), nn.Linear(32 * 4 * 4, 128), nn.Activation("relu"), nn.Dropout(0.2), nn.Linear(128, 3)
    return nn.initialise(nn.Sequential(nn.Input((3, 8, 8)), *inner, *rest), seed)


def optimiser():
    return nn.Optimiser(optim.Adam(), optim.Const(0.003))


def values(model):
    return {path: x.value for path, x in model.variables().items()}


def assert_same(one, other):
    for path, value in values(one).items():
        np.testing.assert_array_equal(values(other)[path], value, path)


def train(model, engine, steps=4, **options):
    options = {"precision": "bf16", "progress": False, **options}
    data = nn.Loader((PICTURES, CLASSES), BATCH)
    epochs = steps / data.steps_per_epoch
    return nn.train(model, data, optimiser=optimiser(), epochs=epochs, engine=engine, **options)


@every_engine
def test_training_has_one_result_however_it_is_run(engine):
    whole = network()
    history = train(whole, engine("host", 1, poison=True))
    plain = train(network(), CpuEngine(), precision=None)
    assert (history.loss != plain.loss).any() and np.abs(history.loss - plain.loss).max() < 0.02
    for threads, options in ((2, {"recompute": False}), (3, {"recompute": True})):
        model = network()
        again = train(model, engine("host", threads, poison=True), **options)
        np.testing.assert_array_equal(again.loss, history.loss)
        assert_same(model, whole)


@every_engine
def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one(engine, tmp_path):
    whole, saved = network(), nn.Checkpoint(tmp_path / "run.json", steps=2)
    want = train(whole, engine())
    train(network(), engine(), steps=3, checkpoint=saved)
    fresh = network(seed=9)
    got = train(fresh, engine(), checkpoint=saved)
    np.testing.assert_array_equal(got.loss, want.loss)
    assert_same(fresh, whole)


def test_a_saved_step_continues_with_the_same_bits(tmp_path):
    model, batch = network(), (PICTURES[:BATCH], CLASSES[:BATCH])
    engine = PairsEngine()
    if engine.kernel_target.bf16 == "dot":
        pytest.skip("the processor's instruction rounds a pair's sum otherwise than saved code does")
    step = nn.training_step(model, cross_entropy, optimiser(), batch, engine=engine, precision="bf16")
    step(*batch)
    step.function.save(tmp_path / "step")
    loaded = cg.load(tmp_path / "step")
    assert loaded.precision == step.function.precision
    for _ in range(3):
        assert loaded(*batch)[0] == step(*batch)[0]


@every_engine
def test_the_three_products_of_each_layer_round_and_the_rest_does_not(engine):
    batch = PICTURES[:BATCH], CLASSES[:BATCH]
    step = nn.training_step(network(), cross_entropy, optimiser(), batch, engine=engine(), precision="bf16")
    floats = {x.name for x in step.function.precision.layers if x.computed == "float32"}
    few = {"parts.14.weight", "parts.14.weight.2", "gradient of parts.14"}  # three columns
    first = {"parts.1.weight", "gradient of parts.1"} if engine is PairsEngine else set()
    assert floats == few | first
    share = step.function.precision.summary()[0]
    assert share.startswith(f"{14 - len(floats)} of 14 layers in bf16")
    assert all(x.dtype == "float32" for x in step.parameters.values())


def test_without_faster_products_training_is_that_of_float32_to_the_bit(monkeypatch):
    plain = replace(target_named("host"), bf16="", tiles="")
    monkeypatch.setattr(CpuEngine, "kernel_target", property(lambda _: plain))
    one, other, batch = network(), network(), (PICTURES[:BATCH], CLASSES[:BATCH])
    steps = [
        nn.training_step(model, cross_entropy, optimiser(), batch, engine=CpuEngine(), precision=precision)
        for model, precision in ((one, None), (other, "bf16"))
    ]
    for _ in range(3):
        assert steps[0](*batch) == steps[1](*batch)
    assert_same(one, other)
    assert steps[0].function.nbytes == steps[1].function.nbytes
    assert steps[1].function.precision.reason and not steps[1].function.precision.bf16_layers


@every_engine
def test_a_decoder_learns_as_in_float32(engine):
    tokens = np.random.default_rng(1).integers(0, 50, (8, 33)).astype("i4")
    decoder = lambda: nn.models.gpt(0, 50, 32, 64, heads=2, layers=1)  # noqa: E731
    losses = []
    for options in ({"engine": CpuEngine()}, {"engine": engine("host", 2, poison=True), "precision": "bf16"}):
        batch = tokens[:, :-1], tokens[:, 1:]
        step = nn.training_step(decoder(), cross_entropy, optimiser(), batch, **options)
        losses.append([step(*batch)[0] for _ in range(8)])
    plain, rounded = np.array(losses)
    assert plain[-1] < plain[0] - 0.5 and (rounded != plain).any()
    assert np.abs(rounded - plain).max() < 0.02
