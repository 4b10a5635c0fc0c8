"""On a real GPU: ``pytest -m cuda``, some minutes. Elsewhere every test skips and says why."""

import gc

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.engine.cuda.engine import CudaEngine, open_device
from cgraph.engine.reference import evaluate
from cgraph.errors import EngineError
from nn import models
from tests.ops.cases import CASES
from tests.ops.test_cases import Drawn, nodes_of
from tests.support.tolerance import assert_close, assert_near

pytestmark = pytest.mark.cuda
every_tier = pytest.mark.parametrize("blocks", [True, False], ids=["blocks", "tasks"])
RUNS = 10_000


@pytest.fixture(scope="module", autouse=True)
def gpu():
    try:
        return open_device(0)
    except EngineError as error:
        pytest.skip(str(error))


@every_tier
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_op_equals_reference(case, blocks, capsys):
    drawn = Drawn(case.in_float32())
    outputs = nodes_of(drawn, case.smooth)
    with np.errstate(all="ignore"):
        want = evaluate(outputs, drawn.given)
    found = cg.compile(outputs, drawn.xs, engine=CudaEngine(poison=True, blocks=blocks))(
        *(drawn.given[x] for x in drawn.xs)
    )
    for got, expected in zip(found, want):
        assert_close(got, expected, case.scale)


@every_tier
def test_networks_agree_with_the_processor(blocks):
    x = np.random.default_rng(0).standard_normal((2, 3, 64, 64), "float32")
    network = models.ResNet((2, 2, 2, 2), small=True, classes=10, image=(3, 64, 64))
    network = nn.initialise(network, 0)
    here, there = (nn.compile(network, 2, engine=engine)(x) for engine in ("cpu", CudaEngine(blocks=blocks)))
    assert_near(there, here, "float32 deep networks")


def training():
    """A step that changes its weights, and a batch."""
    rng = np.random.default_rng(0)
    x, w = cg.Var((64, 50), name="x"), cg.Var((50, 10), name="w").assign(rng.standard_normal((50, 10), "float32"))
    loss = cg.mean(cg.square(cg.tanh(x @ w)))
    step = cg.compile(loss, x, updates={w: w - 0.1 * cg.gradient(loss, w)}, engine="cuda")
    return step, w, rng.standard_normal((64, 50), "float32")


def test_training_twice_gives_the_same_bits():
    found = []
    for _ in range(2):
        step, w, batch = training()
        losses = [float(step(batch)) for _ in range(50)]
        found.append((losses, w.value.tobytes()))
    assert found[0] == found[1] and found[0][0][-1] < found[0][0][0]


def test_many_runs_take_no_more_memory(gpu):
    step, _, batch = training()
    for _ in range(5):
        step(batch)
    gc.collect()
    before = gpu.free_nbytes()
    for _ in range(RUNS):
        step(batch)
    assert gpu.free_nbytes() >= before


def test_the_simulator_gives_the_bits_of_the_gpu():
    x = cg.Var((1000,), name="x")
    nodes = [cg.exp(x), cg.sin(x), cg.tanh(x) * x, cg.cumsum(x), cg.sort(x)]
    value = np.random.default_rng(1).uniform(-5, 5, 1000).astype("float32")
    here, there = (cg.compile(nodes, x, engine=engine)(value) for engine in ("cuda", "cuda-sim"))
    assert [a.tobytes() for a in here] == [b.tobytes() for b in there]
