"""Networks of sequences for `benchmarks.training`: a recurrent layer that classifies, and a small decoder."""

from collections.abc import Callable
from typing import Any

import numpy as np

NETWORKS = ("lstm", "gru", "gpt")
LENGTH, INPUTS, UNITS, CLASSES = 64, 64, 128, 10
SYMBOLS, FEATURES, HEADS, LAYERS = 128, 128, 4, 4
Step = Callable[[], Any]


def batch(network: str) -> tuple[np.ndarray, np.ndarray]:
    """Return 32 sequences of 64 steps with their classes, or 16 windows of 256 tokens with the tokens that follow."""
    rng = np.random.default_rng(0)
    if network == "gpt":
        tokens = rng.integers(0, SYMBOLS, (16, 257))
        return tokens[:, :-1], tokens[:, 1:]
    return rng.standard_normal((32, LENGTH, INPUTS), np.float32), rng.integers(0, CLASSES, 32)


def cgraph_step(network: str, threads: int, **options: Any) -> Step:
    import nn

    x, y = batch(network)
    if network == "gpt":
        model: nn.Layer = nn.models.gpt(0, SYMBOLS, x.shape[1], FEATURES, HEADS, LAYERS)
    else:
        cell = {"lstm": nn.LSTM, "gru": nn.GRU}[network]
        model = nn.initialise(nn.Sequential(cell(INPUTS, UNITS), nn.Linear(UNITS, CLASSES)), 0)
    step = nn.training_step(model, nn.losses.cross_entropy, nn.Optimiser(), (x, y), threads=threads, **options)
    return lambda: step(x, y)


def torch_step(network: str, threads: int) -> Step:
    import torch
    from torch.nn.functional import cross_entropy

    torch.set_num_threads(threads)
    model = torch_gpt() if network == "gpt" else torch_recurrent(network)
    optimiser = torch.optim.Adam(model.parameters())
    x, y = (torch.from_numpy(np.ascontiguousarray(array)) for array in batch(network))

    def step() -> float:
        optimiser.zero_grad()
        loss = cross_entropy(model(x).flatten(0, -2), y.flatten())
        loss.backward()
        optimiser.step()
        return float(loss.detach())

    return step


def torch_recurrent(network: str) -> Any:
    from torch import nn

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = {"lstm": nn.LSTM, "gru": nn.GRU}[network](INPUTS, UNITS, batch_first=True)
            self.scores = nn.Linear(UNITS, CLASSES)

        def forward(self, x: Any) -> Any:
            return self.scores(self.cell(x)[0][:, -1])

    return Recurrent()


def torch_gpt() -> Any:
    """Return the same decoder, with torch's own fused attention."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(FEATURES), nn.LayerNorm(FEATURES)])
            self.parts, self.joined = nn.Linear(FEATURES, 3 * FEATURES), nn.Linear(FEATURES, FEATURES)
            wide = nn.Linear(FEATURES, 4 * FEATURES), nn.Linear(4 * FEATURES, FEATURES)
            self.mixing = nn.Sequential(wide[0], nn.GELU("tanh"), wide[1])

        def forward(self, x: Any) -> Any:
            q, k, v = self.parts(self.norms[0](x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.joined(mixed.transpose(1, 2).flatten(2))
            return x + self.mixing(self.norms[1](x))

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(SYMBOLS, FEATURES), nn.Parameter(torch.zeros(256, FEATURES))
            self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
            self.norm, self.scores = nn.LayerNorm(FEATURES), nn.Linear(FEATURES, SYMBOLS)

        def forward(self, x: Any) -> Any:
            return self.scores(self.norm(self.blocks(self.tokens(x) + self.places)))

    return Decoder()
