"""A training step of a network, compared with torch: seconds, and peak memory above the imports.

python -m benchmarks.training [networks]               same network, Adam, 2 threads; lenet and mlp a batch of 100
python -m benchmarks.training processor [networks]     one thread, by processor time, for a loaded machine
python -m benchmarks.training bf16 ...                 torch's autocast to bfloat16 as well

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
AUTOCAST = "torch-bf16"  # its products in bfloat16, as torch.autocast selects them
NETWORKS = ("lenet", "mlp", *training_sequences.NETWORKS)
ROUNDS, STEPS, BATCH = 3, 12, 100
CLOCKS = {"wall": (time.perf_counter, 2), "processor": (time.process_time, 1)}  # with threads
MLP = (784, 300, 100, 10)


def batch(network: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    shape = (BATCH, 1, 28, 28) if network == "lenet" else (BATCH, MLP[0])
    return rng.random(shape, np.float32), rng.integers(0, 10, BATCH).astype(np.int32)


def cgraph_step(network: str, threads: int) -> Callable[[], Any]:
    import nn

    if network in training_sequences.NETWORKS:
        return training_sequences.cgraph_step(network, threads)
    model = nn.models.lenet(0) if network == "lenet" else nn.models.mlp(0, MLP)
    x, y = batch(network)
    step = nn.training_step(model, nn.losses.cross_entropy, nn.Optimiser(), (x, y), threads=threads)
    return lambda: step(x, y)


def torch_step(network: str, threads: int) -> Callable[[], Any]:
    import torch
    from torch import nn

    if network in training_sequences.NETWORKS:
        return training_sequences.torch_step(network, threads)
    torch.set_num_threads(threads)
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
    """Return the network of Owl's example lazy_mnist."""
    from torch import nn

    front = (nn.Conv2d(1, 32, 5, padding="same"), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.1), nn.Flatten())
    return nn.Sequential(*front, nn.Linear(6272, 1024), nn.ReLU(), nn.Linear(1024, 10))


def measure(engine: str, network: str, clock: str) -> dict[str, float]:
    """Measure in this process: median seconds of a step, and peak bytes above the imports."""
    if engine == "cgraph":
        import nn  # noqa: F401
    else:
        import torch  # noqa: F401
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    now, threads = CLOCKS[clock]
    step = (cgraph_step if engine == "cgraph" else torch_step)(network, threads)
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
    """Print the times of all engines, and ours beside each peer's."""
    found: dict[str, list[dict[str, float]]] = {engine: [] for engine in engines}
    for _ in range(ROUNDS):
        for engine in engines:
            command = [sys.executable, "-m", "benchmarks.training", network, engine, clock]
            output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            found[engine].append(json.loads(output))
    rows = {e: {k: statistics.median(r[k] for r in found[e]) for k in ("seconds", "peak")} for e in engines}
    for engine, row in rows.items():
        print(f"{network:6} {engine:10} {row['seconds'] * 1e3:9.2f} ms a step {row['peak'] / 2**20:8.1f} MiB")
    for peer in engines[1:]:
        speed = rows[peer]["seconds"] / rows["cgraph"]["seconds"]
        memory = rows["cgraph"]["peak"] / rows[peer]["peak"]
        print(f"{network:6} cgraph has {speed:.2f} times {peer}'s speed and {memory:.2f} of its memory")


def main() -> None:
    words = sys.argv[1:]
    if set(words) & {*ENGINES, AUTOCAST}:
        network, engine, clock = words
        print(json.dumps(measure(engine, network, clock)))
        return
    clock = "processor" if "processor" in words else "wall"
    engines = (*ENGINES, AUTOCAST) if "bf16" in words else ENGINES
    for network in [x for x in words if x in NETWORKS] or NETWORKS:
        compare(network, clock, engines)


if __name__ == "__main__":
    main()
