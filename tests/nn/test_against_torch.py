"""Random networks and optimisers against torch in float64: results, losses, weights and statistics after steps."""

import numpy as np
import pytest

import nn
from nn.torch_names import TorchNames
from tests.support.tolerance import assert_near

torch = pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.slow
F = torch.nn.functional
ACTIVATIONS = {"elu": F.elu, "gelu": F.gelu, "mish": F.mish, "selu": F.selu, "swish": F.silu, "tanh": torch.tanh}
LOSSES = {
    "quadratic": F.mse_loss,
    "huber": F.smooth_l1_loss,
    "l1": lambda p, t: (p - t).abs().sum() / len(p),
    "binary_cross_entropy": F.binary_cross_entropy_with_logits,
}
METHODS = {
    "plain": (nn.Optimiser(nn.optim.GradientDescent(), 0.05), lambda p: torch.optim.SGD(p, 0.05)),
    "momentum": (
        nn.Optimiser(nn.optim.GradientDescent(), 0.02, nn.optim.Standard(0.8)),
        lambda p: torch.optim.SGD(p, 0.02, momentum=0.8),
    ),
    "nesterov": (
        nn.Optimiser(nn.optim.GradientDescent(), 0.02, nn.optim.Nesterov(0.8)),
        lambda p: torch.optim.SGD(p, 0.02, momentum=0.8, nesterov=True),
    ),
    "adam": (nn.Optimiser(nn.optim.Adam(eps=0.01), 0.01), lambda p: torch.optim.Adam(p, 0.01, eps=0.01)),
    "adamw": (
        nn.Optimiser(nn.optim.AdamW(eps=0.01, decay=0.1), 0.01),
        lambda p: torch.optim.AdamW(p, 0.01, eps=0.01, weight_decay=0.1),
    ),
    "rmsprop": (
        nn.Optimiser(nn.optim.RMSprop(decay=0.9, eps=0.01), 0.01),
        lambda p: torch.optim.RMSprop(p, 0.01, 0.9, 0.01),
    ),
    "adagrad": (nn.Optimiser(nn.optim.Adagrad(eps=0.01), 0.01), lambda p: torch.optim.Adagrad(p, 0.01, eps=0.01)),
}


class Around(torch.nn.Module):
    """A module whose operand is padded, or whose result is, which crops it where a width is negative."""

    def __init__(self, module, widths):
        super().__init__()
        self.module, self.widths = module, [int(n) for pair in reversed(widths) for n in pair]

    def forward(self, x):
        if min(self.widths, default=0) < 0:
            return F.pad(self.module(x), self.widths)
        return self.module(F.pad(x, self.widths))


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.forward = function


def draw_windows(rng, x):
    """Window, stride, dilation, and pad before and after, for each axis."""
    axes = x.ndim - 2
    window, stride, dilation = (tuple(map(int, rng.integers(1, n, axes))) for n in (5, 4, 3))
    before, after = (tuple(map(int, rng.integers(0, 3, axes))) for _ in range(2))
    return window, stride, dilation, before, after


def draw_layer(rng, x):
    """A layer that may follow `x`, and torch's."""
    axes, channels = x.ndim - 2, x.shape[1]
    window, stride, dilation, before, after = draw_windows(rng, x)
    groups = int(rng.choice([n for n in range(1, channels + 1) if channels % n == 0]))
    outputs, bias = groups * int(rng.integers(1, 5)), bool(rng.random() < 0.5)
    kind = rng.choice(["conv", "conv", "transposed", "largest", "mean", "batch", "group", "activation", "linear"])
    if kind == "conv":
        layer = getattr(nn, f"Conv{axes}d")(channels, outputs, window, stride, before + after, dilation, groups, bias)
        own = getattr(torch.nn, f"Conv{axes}d")(channels, outputs, window, stride, 0, dilation, groups, bias)
        return layer, Around(own, [*zip(before, after)])
    if kind == "transposed":
        crop = tuple(-n for n in before), tuple(-n for n in after)
        name = f"ConvTranspose{axes}d"
        own = getattr(torch.nn, name)(channels, outputs, window, stride, 0, 0, groups, bias, dilation)
        layer = getattr(nn, f"TransposeConv{axes}d")(
            channels, outputs, window, stride, before + after, dilation, groups, bias
        )
        return layer, Around(own, [*zip(*crop)])
    pad, ceil = tuple(int(rng.integers(0, n // 2 + 1)) for n in window), bool(rng.random() < 0.5)
    if kind == "largest":
        own = getattr(torch.nn, f"MaxPool{axes}d")(window, stride, pad, ceil_mode=ceil)
        return getattr(nn, f"MaxPool{axes}d")(window, stride, pad, ceil), own
    if kind == "mean":
        own = getattr(torch.nn, f"AvgPool{axes}d")(window, stride, pad, ceil, bias)
        return getattr(nn, f"AvgPool{axes}d")(window, stride, pad, ceil, bias), own
    if kind == "batch":
        return nn.BatchNorm(channels, 0.01, 0.8), getattr(torch.nn, f"BatchNorm{axes}d")(channels, 0.01, 0.2)
    if kind == "group":
        return nn.GroupNorm(groups, channels, 0.01), torch.nn.GroupNorm(groups, channels, 0.01)
    if kind == "linear":
        return nn.Linear(x.shape[-1], outputs, bias), torch.nn.Linear(x.shape[-1], outputs, bias)
    name = str(rng.choice([*ACTIVATIONS]))
    return nn.Activation(name), Function(ACTIVATIONS[name])


def draw_network(rng):
    """A network, torch's, and the shape of its samples; at least two pixels of each channel remain for norms."""
    axes = int(rng.integers(1, 4))
    shape = (2, int(rng.integers(1, 20)), *map(int, rng.integers(2, (40, 13, 7)[axes - 1], axes)))
    x, pairs = torch.zeros(shape), []
    while len(pairs) < 4:
        layer, module = draw_layer(rng, x)
        try:
            y = module(x)
        except (RuntimeError, ValueError):  # a window that does not fit, or a norm of one number
            continue
        if 0 < y.numel() < 20_000:
            pairs.append((layer, module))
            x = y.detach()
    return pairs, shape, tuple(x.shape)


def arrays_of(pairs):
    """torch's arrays, by the Parameters of the layers."""
    arrays = {}
    for layer, module in pairs:
        own = getattr(module, "module", module)
        state = {name: x.detach().numpy() for name, x in own.state_dict().items()}
        values = layer.from_torch(TorchNames(state)) if layer.variables() else {}
        arrays |= {layer.variables()[name]: x for name, x in values.items()}
    return arrays


def assert_like_torch(got, want):
    assert_near(got, want, "float32 trainings beside float64", np.abs(want).max(initial=0.01))


@pytest.fixture(autouse=True)
def float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("seed", range(60))
def test_a_random_network_trains_as_in_torch(seed):
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    pairs, shape, result = draw_network(rng)
    modules = torch.nn.Sequential(*(module for _, module in pairs))
    for x, value in arrays_of(pairs).items():
        x.assign(np.ascontiguousarray(value, np.float32))
    model = nn.Sequential(*(layer for layer, _ in pairs))
    draws = [rng.normal(size=shape).astype("f4") for _ in range(4)]
    with torch.no_grad():
        want = modules.eval()(torch.tensor(draws[0].astype(float))).numpy()
    assert_like_torch(nn.compile(model, batch=shape[0], samples=[nn.Sample(shape[1:])])(draws[0]), want)
    if not model.parameters():
        return
    loss, method = str(rng.choice([*LOSSES])), str(rng.choice([*METHODS]))
    optimiser, build = METHODS[method]
    targets = rng.integers(0, 2, result).astype("f4")
    step = nn.training_step(model, getattr(nn.losses, loss), optimiser, (draws[0], targets))
    own = build(modules.train().parameters())
    for x in draws:
        own.zero_grad()
        total = LOSSES[loss](modules(torch.tensor(x.astype(float))), torch.tensor(targets.astype(float)))
        total.backward()
        own.step()
        assert_like_torch(step(x, targets)[0], total.item())
        for variable, value in arrays_of(pairs).items():
            assert_like_torch(variable.value, value)
