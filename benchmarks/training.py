"""A training step of a network, compared with torch: seconds, and peak memory above the imports.

python -m benchmarks.training [networks]               same network, Adam, 2 threads; images in batches of 100
python -m benchmarks.training processor [networks]     one thread, by processor time, for a loaded machine
python -m benchmarks.training bf16 ...                 precision="bf16" and torch's autocast to bfloat16 as well

Each engine runs in a process of its own, in turns; times are medians over the processes' medians. Peak memory is the
process's largest resident size less that after the imports.
"""

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from benchmarks import training_sequences

ENGINES = ("cgraph", "torch")
# products in bfloat16: where `precision` permits them, and as torch.autocast selects them
ROUNDED, AUTOCAST = "cgraph-bf16", "torch-bf16"
NETWORKS = ("lenet", "mlp", "resnet20", *training_sequences.NETWORKS)
ROUNDS, STEPS, BATCH = 3, 12, 100
CLOCKS = {"wall": (time.perf_counter, 2), "processor": (time.process_time, 1)}  # with threads
MLP = (784, 300, 100, 10)


def batch(network: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    shape = {"lenet": (1, 28, 28), "mlp": MLP[:1], "resnet20": (3, 32, 32)}[network]
    return rng.random((BATCH, *shape), np.float32), rng.integers(0, 10, BATCH).astype(np.int32)


def cgraph_step(network: str, threads: int, **options: Any) -> Callable[[], Any]:
    import nn

    if network in training_sequences.NETWORKS:
        return training_sequences.cgraph_step(network, threads, **options)
    models = {"lenet": nn.models.lenet, "mlp": lambda seed: nn.models.mlp(seed, MLP), "resnet20": nn.models.resnet20}
    x, y = batch(network)
    model = models[network](0)
    step = nn.training_step(model, nn.losses.cross_entropy, nn.Optimiser(), (x, y), threads=threads, **options)
    return lambda: step(x, y)


def torch_step(network: str, threads: int) -> Callable[[], Any]:
    import torch
    from torch import nn

    if network in training_sequences.NETWORKS:
        return training_sequences.torch_step(network, threads)
    torch.set_num_threads(threads)
    if network in ("lenet", "resnet20"):
        model = torch_lenet() if network == "lenet" else torch_resnet20()
    else:
        a, b, c, d = MLP
        model = nn.Sequential(nn.Linear(a, b), nn.ReLU(), nn.Linear(b, c), nn.ReLU(), nn.Linear(c, d))
    optimiser = torch.optim.Adam(model.parameters())
    x, y = (torch.from_numpy(array) for array in batch(network))
    y = y.long()

    def step() -> float:
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimiser.step()
        return float(loss)

    return step


def torch_lenet() -> Any:
    """Return the network of Owl's example lazy_mnist."""
    from torch import nn

    front = (nn.Conv2d(1, 32, 5, padding="same"), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.1), nn.Flatten())
    return nn.Sequential(*front, nn.Linear(6272, 1024), nn.ReLU(), nn.Linear(1024, 10))


def torch_resnet20() -> Any:
    """Return the ResNet of 20 layers for CIFAR-10, with shortcuts without weights (He et al. 2015, section 4.2)."""
    import torch
    from torch import nn

    def layer(c: int, k: int, stride: int) -> Any:
        return nn.Sequential(nn.Conv2d(c, k, 3, stride, 1, bias=False), nn.BatchNorm2d(k))

    class Block(nn.Module):
        def __init__(self, c: int, k: int) -> None:
            super().__init__()
            self.stride, self.more = k // c, (k - c) // 2
            self.first, self.second = layer(c, k, k // c), layer(k, k, 1)

        def forward(self, x: Any) -> Any:
            more = (0, 0, 0, 0, self.more, self.more)
            shortcut = nn.functional.pad(x[:, :, :: self.stride, :: self.stride], more)
            return torch.relu(self.second(torch.relu(self.first(x))) + shortcut)

    widths = [16, *(n for n in (16, 32, 64) for _ in range(3))]
    blocks = [Block(c, k) for c, k in zip(widths, widths[1:])]
    return nn.Sequential(layer(3, 16, 1), nn.ReLU(), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def measure(engine: str, network: str, clock: str) -> dict[str, float]:
    """Measure in this process: median seconds of a step, and peak bytes above the imports."""
    ours = engine in (ENGINES[0], ROUNDED)
    if ours:
        import nn  # noqa: F401
    else:
        import torch  # noqa: F401
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    now, threads = CLOCKS[clock]
    options = {"precision": "bf16"} if engine == ROUNDED else {}
    step = cgraph_step(network, threads, **options) if ours else torch_step(network, threads)
    with autocast() if engine == AUTOCAST else nullcontext():
        for _ in range(3):
            step()
        times = []
        for _ in range(20 * STEPS if network == "mlp" else STEPS):
            start = now()
            step()
            times.append(now() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"seconds": statistics.median(times), "peak": peak * 1024}


def autocast() -> AbstractContextManager[Any]:
    """Return the context in which torch rounds the factors of products to bfloat16."""
    import torch

    return torch.autocast("cpu", torch.bfloat16)


def compare(network: str, clock: str, engines: Sequence[str]) -> None:
    """Print the times of all engines, and ours in float32 and in bfloat16 beside the others'."""
    found: dict[str, list[dict[str, float]]] = {engine: [] for engine in engines}
    for _ in range(ROUNDS):
        for engine in engines:
            command = [sys.executable, "-m", "benchmarks.training", network, engine, clock]
            output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            found[engine].append(json.loads(output))
    rows = {e: {k: statistics.median(r[k] for r in found[e]) for k in ("seconds", "peak")} for e in engines}
    for engine, row in rows.items():
        print(f"{network:6} {engine:11} {row['seconds'] * 1e3:9.2f} ms a step {row['peak'] / 2**20:8.1f} MiB")
    pairs = [(ENGINES[0], ENGINES[1])]
    if ROUNDED in engines:
        pairs += [(ROUNDED, AUTOCAST), (ROUNDED, ENGINES[0])]
    for own, peer in pairs:
        speed = rows[peer]["seconds"] / rows[own]["seconds"]
        memory = rows[own]["peak"] / rows[peer]["peak"]
        print(f"{network:6} {own} has {speed:.2f} times {peer}'s speed and {memory:.2f} of its memory", flush=True)


def main() -> None:
    words = sys.argv[1:]
    if set(words) & {*ENGINES, ROUNDED, AUTOCAST}:
        network, engine, clock = words
        print(json.dumps(measure(engine, network, clock)))
        return
    clock = "processor" if "processor" in words else "wall"
    engines = (*ENGINES, ROUNDED, AUTOCAST) if "bf16" in words else ENGINES
    for network in [x for x in words if x in NETWORKS] or NETWORKS:
        compare(network, clock, engines)


if __name__ == "__main__":
    main()
