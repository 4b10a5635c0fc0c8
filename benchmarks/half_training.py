"""Training with products of bfloat16 beside float32: losses and right answers for three seeds. No times.

python -m benchmarks.half_training [mnist resnet20 gpt]

Where this processor lacks the instructions, kernels emulate pairs and tiles, with the bits of tiles, and slowly; so the
networks are small and their runs short. Seeds change the first weights and the order of samples.
"""

import sys
from collections.abc import Callable
from pydoc_data.topics import topics
from typing import Any

import numpy as np

import nn
from cgraph.engine.cpu.engine import CpuEngine
from nn.losses import cross_entropy
from tests.nn.test_targets import DEVIATION, MEAN, cifar10, mnist
from tests.support.emulated import PairsEngine, TilesEngine

WAYS: dict[str, dict[str, Any]] = {
    "float32": {"engine": CpuEngine()},
    "pairs": {"engine": PairsEngine(), "precision": "bf16"},
    "tiles": {"engine": TilesEngine(), "precision": "bf16"},
}
SEEDS, LAST = (0, 1, 2), 20  # steps whose mean loss is shown
Arrays = tuple[np.ndarray, np.ndarray]
Task = tuple[Callable[[int], nn.Layer], Arrays, Arrays, int, int, float]
"""Model of a seed, samples, held-out samples, samples of a batch, steps, rate."""


def of_mnist() -> Task:
    """784-300-100-10 on 8,000 pictures."""
    pictures, wanted = mnist()
    rows = pictures.reshape(len(pictures), -1)
    parts = (rows[:8000], wanted[:8000]), (rows[8000:], wanted[8000:])
    return lambda seed: nn.models.mlp(seed, (784, 300, 100, 10)), *parts, 100, 240, 0.001


def of_resnet20() -> Task:
    """ResNet-20 on 800 pictures of CIFAR-10."""
    pictures, wanted = cifar10()
    order = np.random.default_rng(0).permutation(len(wanted))
    values = ((pictures / 255 - np.float32(MEAN)) / np.float32(DEVIATION)).transpose(0, 3, 1, 2)
    values, wanted = np.ascontiguousarray(values[order]), wanted[order].astype(np.int32)
    parts = (values[:800], wanted[:800]), (values[800:], wanted[800:])
    return nn.models.resnet20, *parts, 16, 60, 0.003


def of_gpt() -> Task:
    """The decoder of examples/gpt.py with 2 layers of 64, on 64 characters."""
    text, length = "\n\n".join(topics[name] for name in sorted(topics)), 64
    symbols = sorted(set(text))
    windows = np.lib.stride_tricks.sliding_window_view(np.array([symbols.index(c) for c in text]), length + 1)
    seen, unseen = windows[:-20_000], windows[-20_000::length]
    parts = (seen[:, :-1], seen[:, 1:]), (unseen[:, :-1], unseen[:, 1:])
    return lambda seed: nn.models.llama(seed, len(symbols), length, 64, 4, 2), *parts, 16, 300, 0.003


TASKS = {"mnist": of_mnist, "resnet20": of_resnet20, "gpt": of_gpt}


def trained(task: Task, seed: int, options: dict[str, Any]) -> tuple[float, float]:
    """Return the mean loss of the last steps, and the share of right answers to held-out samples in float32."""
    build, seen, (questions, answers), batch, steps, rate = task
    model = build(seed)
    data = nn.Loader(seen, batch, seed=seed, order="sampled")
    optimiser = nn.Optimiser(rate=nn.optim.Cosine(rate, steps=steps))
    history = nn.train(
        model, data, cross_entropy, optimiser, epochs=steps / data.steps_per_epoch, progress=False, **options
    )
    count = len(questions) // 50 * 50
    predict = nn.compile(model, batch=50)
    scores = np.concatenate([predict(questions[i : i + 50]) for i in range(0, count, 50)])
    return float(history.loss[-LAST:].mean()), float((scores.argmax(-1) == answers[:count]).mean())


def main(names: list[str]) -> None:
    for name in names or TASKS:
        task = TASKS[name]()
        for seed in SEEDS:
            results = {way: trained(task, seed, options) for way, options in WAYS.items()}
            cells = (f"{way} loss {loss:.4f}, {right:.1%} right" for way, (loss, right) in results.items())
            print(f"{name}, seed {seed}: {'; '.join(cells)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
