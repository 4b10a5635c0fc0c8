"""Options of layers: each is passed, with a value other than its default, to a layer that has a formula."""

import ast
import inspect
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgraph as cg
import nn
from tests.nn.support import draw
from tests.ops import option_formulas
from tests.ops.option_formulas import attention, gru, sigmoid
from tests.support.tolerance import assert_near

OPERANDS = {
    "s1": draw(2, 4, 9),
    "s2": draw(2, 4, 7, 8, seed=1),
    "s3": draw(1, 4, 5, 6, 4, seed=2),
    "x": draw(2, 5, 4, seed=3),
    "words": np.array([[1, 0, 6], [2, 6, 5]], "int32"),
}


def lifted(bias, axes: int) -> np.ndarray:
    return bias.reshape(-1, *[1] * axes)


def recurrence(x, weight, state_weight, bias) -> np.ndarray:
    """The states of a Recurrent with ``sin``."""
    h, found = np.zeros((len(x), len(state_weight))), []
    for t in range(x.shape[1]):
        h = np.sin(x[:, t] @ weight + h @ state_weight + bias)
        found.append(h)
    return np.stack(found, 1)


def grus(x, weight, state_weight, bias, state_bias) -> np.ndarray:
    h, found = np.zeros((len(x), len(state_weight))), []
    for t in range(x.shape[1]):
        h = gru(x[:, t], h, weight, state_weight, bias, state_bias)
        found.append(h)
    return np.stack(found, 1)


def lstms(x, weight, state_weight, bias) -> np.ndarray:
    h = c = np.zeros((len(x), len(state_weight)))
    found = []
    for t in range(x.shape[1]):
        i, f, g, o = np.split(x[:, t] @ weight + h @ state_weight + bias, 4, 1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        found.append(h)
    return np.stack(found, 1)


def rotated(x, base: float) -> np.ndarray:
    """Pairs of halves of ``[n, heads, t, d]``, turned by the position times a power of the base."""
    half = x.shape[-1] // 2
    angle = np.arange(x.shape[2])[:, None] * base ** (-np.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], -1)


def mixed(x, p: dict, heads: int, key_heads: int, base: float | None = None, slopes=None, **options: Any) -> np.ndarray:
    """Attention of x to itself, with the weights of the four Linears."""

    def part(name: str, count: int) -> np.ndarray:
        y = x @ p[f"{name}.weight"] + p.get(f"{name}.bias", 0)
        y = y.reshape(*x.shape[:2], count, -1).swapaxes(1, 2)
        return np.repeat(y, heads // count, 1)

    q, k, v = part("query", heads), part("key", key_heads), part("value", key_heads)
    if base is not None:
        q, k = rotated(q, base), rotated(k, base)
    if slopes is not None:
        distance = np.arange(x.shape[1]) - np.arange(x.shape[1])[:, None]
        options["mask"] = distance * np.array(slopes)[:, None, None]
    y = attention(q, k, v, **options).swapaxes(1, 2).reshape(x.shape)
    return y @ p["output.weight"] + p.get("output.bias", 0)


def relative(p: dict, count: int, buckets: int, farthest: int) -> np.ndarray:
    """T5's bias of both directions: exact for the near half, by the logarithm of the distance beyond."""
    half, near = buckets // 2, buckets // 4
    out = np.zeros((len(p["relative"]), count, count))
    for i, j in np.ndindex(count, count):
        gap = abs(j - i)
        far = near + int(math.log(gap / near) / math.log(farthest / near) * (half - near)) if gap >= near else gap
        out[:, i, j] = p["relative"][:, (half if j > i else 0) + min(far, half - 1)]
    return out


ROWS = [line.split(" | ") for line in Path(__file__).with_name("layer_options.txt").read_text().splitlines()]
MEANINGS = {name: x for name, x in vars(option_formulas).items() if callable(x)} | {
    name: x for name, x in globals().items() if callable(x)
}


def computed(layer: nn.Layer, x: np.ndarray, dtype: str = "float32") -> np.ndarray:
    v = cg.Var(x.shape, dtype)
    return np.asarray(cg.compile(layer(v), v, engine="reference")(x.astype(dtype)))


def filled(layer: nn.Layer) -> dict[str, np.ndarray]:
    """Draw every Parameter anew, those of scales and variances above 0, and return them in float64."""
    nn.initialise(layer, 0)
    found = {}
    for i, (name, x) in enumerate(layer.variables().items()):
        values = draw(*x.shape, seed=i + 9) * 0.6
        x.assign(np.abs(values) + np.float32(0.2) if name.endswith(("variance", "scale")) else values)
        found[name] = x.value.astype("float64")
    return found


@pytest.mark.parametrize(("text", "operand", "formula"), ROWS)
def test_a_layer_with_options_gives_what_its_formula_says(text, operand, formula):
    layer, x = eval(text, {"nn": nn, "np": np}), OPERANDS[operand]
    p = filled(layer)
    names = {name: p.get(name) for name in ("weight", "bias")}
    want = eval(formula, MEANINGS | {"np": np, "x": x.astype("float64"), "p": p, **names})
    assert_near(computed(layer, x), want, "float32 small networks")
    assert ("bias" in p) == ("bias" in formula) or any("." in name for name in p)


@pytest.mark.parametrize("kind", [nn.Recurrent, nn.GRU, nn.LSTM])
def test_without_its_sequence_a_cell_gives_the_last_state(kind):
    whole, last = kind(4, 3, sequence=True), kind(4, 3)
    filled(whole), filled(last)
    np.testing.assert_array_equal(computed(last, OPERANDS["x"]), computed(whole, OPERANDS["x"])[:, -1])


STARTED = """Conv1d(4, 6, 3) Conv2d(4, 6, 3) Conv3d(4, 6, 3) TransposeConv1d(4, 6, 3) TransposeConv2d(4, 6, 3)
    TransposeConv3d(4, 6, 3) Linear(4, 3) FullyConnected(20, 3) Recurrent(4, 3) GRU(4, 3) LSTM(4, 3) Embedding(7, 3)"""


@pytest.mark.parametrize("text", STARTED.replace(") ", ")\n").split("\n"))
def test_weights_start_as_they_are_told(text):
    layer = eval(f"nn.{text.strip()[:-1]}, start=nn.init.Constant(0.375))", {"nn": nn})
    nn.initialise(layer, 0)
    assert (layer.weight.value == 0.375).all()
    assert all((x.value != 0.375).any() for name, x in layer.variables().items() if name != "weight")


@pytest.mark.parametrize("make", [nn.BatchNorm, lambda n, **o: nn.ConvNorm(n, n, 1, function="none", **o)])
def test_frozen_statistics_hold_in_training_and_nothing_of_them_is_trained(make):
    layer, x = make(4, frozen=True), OPERANDS["s2"]
    filled(layer)
    mode = nn.Mode(training=True)
    v = cg.Var(x.shape)
    got = cg.compile(layer(v, mode=mode), v, engine="reference")(x)
    np.testing.assert_array_equal(got, computed(layer, x))
    assert not mode.updates
    assert [name for name, p in layer.variables().items() if p.trained and not name.startswith("conv")] == []


def test_statistics_move_by_their_decay():
    layer, x = nn.BatchNorm(4, decay=0.7), OPERANDS["s2"]
    before, mode = filled(layer), nn.Mode(training=True)
    v = cg.Var(x.shape)
    cg.compile(layer(v, mode=mode), v, updates=mode.updates, engine="reference")(x)
    assert_near(layer.mean.value, 0.7 * before["mean"] + 0.3 * x.mean((0, 2, 3)), "float32 small networks")
    ratio = (layer.variance.value - 0.7 * before["variance"]) / (0.3 * x.var((0, 2, 3)))
    n = x[:, 0].size
    assert_near(ratio, np.full(4, ratio[0]), "float32 small networks")
    assert 1 - 1e-5 < ratio[0] < n / (n - 1) + 1e-5


ELSEWHERE = {
    "shares of what training drops, in tests of noise": "AlphaDropout.rate Dropout.rate",
    "the tests above": """BatchNorm.decay BatchNorm.frozen ConvNorm.frozen Conv1d.start Conv2d.start Conv3d.start
        TransposeConv1d.start TransposeConv2d.start TransposeConv3d.start Linear.start FullyConnected.start
        Recurrent.start GRU.start LSTM.start Embedding.start""",
}


def test_every_option_of_every_layer_is_passed_by_some_row():
    """An option that no row passes could be forgotten on its way and no test would see it."""
    calls = [x for text, *_ in ROWS for x in ast.walk(ast.parse(text)) if isinstance(x, ast.Call)]
    passed = {f"{ast.unparse(x.func).removeprefix('nn.')}.{y.arg}" for x in calls for y in x.keywords}
    options = {
        f"{name}.{x.name}"
        for name in nn.layers.__all__
        for x in inspect.signature(getattr(nn, name)).parameters.values()
        if x.default is not x.empty
    }
    assert options - passed == {x for names in ELSEWHERE.values() for x in names.split()}
