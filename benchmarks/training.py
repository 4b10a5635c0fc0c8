"""A training step of the MNIST network and of the MLP, beside torch: seconds, and peak memory above the imports.

python -m benchmarks.training [lenet|mlp]     same network, batch 100, Adam, 2 threads

Each engine runs in a process of its own, in turns; times are medians over the processes' medians. Peak memory is the
process's largest resident size less that after the imports.
"""

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

ENGINES = ("cgraph", "torch")
NETWORKS = ("lenet", "mlp")
ROUNDS, STEPS, BATCH, THREADS = 3, 12, 100, 2
MLP = (784, 300, 100, 10)


def batch(network: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    shape = (BATCH, 1, 28, 28) if network == "lenet" else (BATCH, MLP[0])
    return rng.random(shape, np.float32), rng.integers(0, 10, BATCH).astype(np.int32)


def cgraph_step(network: str) -> Callable[[], Any]:
    import nn

    model = nn.models.lenet(0) if network == "lenet" else nn.models.mlp(0, MLP)
    x, y = batch(network)
    step = nn.training_step(model, nn.losses.cross_entropy, nn.Optimiser(), (x, y), threads=THREADS)
    return lambda: step(x, y)


def torch_step(network: str) -> Callable[[], Any]:
    import torch
    from torch import nn

    torch.set_num_threads(THREADS)
    if network == "lenet":
        model = torch_lenet()
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
    """The network of Owl's example lazy_mnist."""
    from torch import nn

    front = (nn.Conv2d(1, 32, 5, padding="same"), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.1), nn.Flatten())
    return nn.Sequential(*front, nn.Linear(6272, 1024), nn.ReLU(), nn.Linear(1024, 10))


def measure(engine: str, network: str) -> dict[str, float]:
    """In this process: median seconds of a step, and peak bytes above the imports."""
    if engine == "torch":
        import torch  # noqa: F401
    else:
        import nn  # noqa: F401
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step = {"cgraph": cgraph_step, "torch": torch_step}[engine](network)
    for _ in range(3):
        step()
    times = []
    for _ in range(STEPS if network == "lenet" else 20 * STEPS):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"seconds": statistics.median(times), "peak": peak * 1024}


def compare(network: str) -> None:
    found: dict[str, list[dict[str, float]]] = {engine: [] for engine in ENGINES}
    for _ in range(ROUNDS):
        for engine in ENGINES:
            command = [sys.executable, "-m", "benchmarks.training", network, engine]
            output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            found[engine].append(json.loads(output))
    rows = {e: {k: statistics.median(r[k] for r in found[e]) for k in ("seconds", "peak")} for e in ENGINES}
    for engine, row in rows.items():
        print(f"{network:6} {engine:7} {row['seconds'] * 1e3:9.2f} ms a step {row['peak'] / 2**20:8.1f} MiB")
    speed = rows["torch"]["seconds"] / rows["cgraph"]["seconds"]
    memory = rows["cgraph"]["peak"] / rows["torch"]["peak"]
    print(f"{network:6} cgraph has {speed:.2f} times torch's speed and {memory:.2f} of its memory")


def main() -> None:
    if len(sys.argv) > 2:
        print(json.dumps(measure(sys.argv[2], sys.argv[1])))
        return
    for network in sys.argv[1:] or NETWORKS:
        compare(network)


if __name__ == "__main__":
    main()
