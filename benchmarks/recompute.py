"""Bytes saved and time added by `recompute=`: deep chains of equal layers, and a training step of ResNet-20.

python benchmarks/recompute.py
"""

import time

import numpy as np

import cgraph as cg
from nn.losses import cross_entropy
from nn.models.resnet import resnet20
from nn.optim.optimiser import Optimiser
from nn.step import training_step

DEPTHS = (16, 64, 256, 1024)
WIDTH, BATCH = 256, 32
RUNS = 7


def chain(depth: int, recompute: bool) -> tuple[cg.Function, list[np.ndarray]]:
    """Return the loss and the gradients of a chain of layers ``tanh(h * w)``, and its input."""
    rng = np.random.default_rng(0)
    x = cg.Var((BATCH, WIDTH), name="x")
    weights = [cg.Var(WIDTH).assign(rng.normal(1, 0.1, WIDTH).astype("float32")) for _ in range(depth)]
    h = x
    for w in weights:
        h = cg.tanh(h * w)
    loss = cg.sum(h * h)
    function = cg.compile([loss, *cg.gradient(loss, weights)], [x], recompute=recompute)
    return function, [rng.normal(size=x.shape).astype("float32")]


def resnet(recompute: bool) -> tuple[cg.Function, list[np.ndarray]]:
    """Return a training step on 32 pictures."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(32, 3, 32, 32)).astype("float32"), rng.integers(0, 10, 32)]
    return training_step(resnet20(), cross_entropy, Optimiser(), tuple(arrays), recompute=recompute).function, arrays


def seconds(function: cg.Function, arrays: list[np.ndarray]) -> float:
    """Return the median time of a run."""
    function(*arrays)
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        function(*arrays)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def main() -> None:
    print("| graph | bytes without | with | ratio | time |")
    print("|---|---|---|---|---|")
    rows = [(f"chain of {n} layers", lambda recompute, n=n: chain(n, recompute)) for n in DEPTHS]
    for name, make in [*rows, ("ResNet-20, a step of training, 32 pictures", resnet)]:
        (plain, arrays), (again, _) = make(False), make(True)
        ratio = seconds(again, arrays) / seconds(plain, arrays)
        saved = again.nbytes / plain.nbytes
        print(
            f"| {name} | {plain.nbytes / 2**20:.2f} MiB | {again.nbytes / 2**20:.2f} MiB | {saved:.2f} | {ratio:.2f}× |"
        )


if __name__ == "__main__":
    main()
