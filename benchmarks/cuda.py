"""The CUDA engine on a GPU: bandwidth, products, a network, a training step, and the cost of the host.

    python -m benchmarks.cuda

Without a GPU it prints the reason and ends. It compares with torch if torch finds the GPU too. It prints a table at the
end, and writes all figures
in ``out/cuda.json``; a few minutes.
"""

import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import cgraph as cg
import nn
from cgraph.engine.cuda.engine import CudaEngine
from cgraph.engine.cuda.gpu import describe_gpus
from cgraph.errors import EngineError
from nn import models

OUT = Path("out")
WARM = 3  # runs, after which launches are a graph


@dataclass(frozen=True)
class Sizes:
    """Sizes of the measurements.

    Fields
        rows, columns: of the large arrays; products: sizes of square matrices; batches: of ResNet-50
        channels, image: of convolutions, of square images in a batch
        kernels: length of the chain of small kernels
        turns, least: turns of a measurement, and the minimum seconds of each turn
    """

    rows: int = 16384
    columns: int = 1024
    products: tuple[int, ...] = (512, 2048, 4096)
    batches: tuple[int, ...] = (1, 32)
    channels: tuple[int, ...] = (64, 512)
    image: tuple[int, int] = (32, 28)
    kernels: int = 60
    turns: int = 9
    least: float = 0.05


@dataclass
class Bench:
    """One device, torch if it finds the device, and the sizes. Changes: nothing but the device."""

    engine: Callable[..., CudaEngine] = CudaEngine
    torch: Any = None
    sizes: Sizes = field(default_factory=Sizes)

    def rows(self) -> Iterator[tuple[str, float, float, str, float | None]]:
        """Yield for each figure: name, seconds, the figure, its unit, and torch's seconds."""
        for name, run, amount, unit, other in (
            *self.arrays(),
            *self.matrices(),
            *self.convolutions(),
            *self.networks(),
            *self.steps(),
        ):  # fmt: skip:
            took = self.seconds(run)
            beside = self.seconds(partial(self.synchronised, other)) if self.torch and other else None
            yield name, took, 1e3 * took if unit == "ms" else amount / took, unit, beside

    def arrays(self) -> Iterator[tuple]:
        """Yield bytes read and written per second."""
        rows, columns = self.sizes.rows, self.sizes.columns
        x, y = filled("x", rows, columns), filled("y", rows, columns)
        gb = x.nbytes / 1e9
        a, b = self.on_gpu(rows, columns), self.on_gpu(rows, columns)
        yield "x * 2 + y", self.stays(x * 2 + y), 3 * gb, "GB/s", lambda: self.torch.add(b, a, alpha=2)
        yield "sum", self.stays(cg.sum(x)), gb, "GB/s", lambda: a.sum()
        yield "softmax of rows", self.stays(cg.softmax(x, 1)), 2 * gb, "GB/s", lambda: a.softmax(1)
        yield "sum of columns", self.stays(cg.sum(x, 0)), gb, "GB/s", lambda: a.sum(0)
        yield (
            "layer norm",
            self.stays(cg.layer_norm(x, filled("s", columns), filled("t", columns))),
            2 * gb,
            "GB/s",
            None,
        )
        yield "transpose", self.stays(cg.transpose(x) * 1), 2 * gb, "GB/s", lambda: a.T.contiguous()
        yield "running sum of rows", self.stays(cg.cumsum(x, 1)), 2 * gb, "GB/s", lambda: a.cumsum(1)

    def matrices(self) -> Iterator[tuple]:
        for n in self.sizes.products:
            x, y, a, b = filled("x", n, n), filled("y", n, n), self.on_gpu(n, n), self.on_gpu(n, n)
            yield f"matmul {n}", self.stays(x @ y), 2 * n**3 / 1e12, "TFLOP/s", partial(lambda a, b: a @ b, a, b)

    def convolutions(self) -> Iterator[tuple]:
        """Yield 3 × 3 convolutions and both their gradients."""
        n, size = self.sizes.image
        for c in self.sizes.channels:
            x, f = filled("x", n, c, size, size), filled("f", c, c, 3, 3)
            y, work = cg.conv2d(x, f, pad=(1, 1, 1, 1)), 18 * n * size**2 * c**2 / 1e12
            to_x, to_f = cg.gradient(cg.sum(cg.square(y)), [x, f])
            yield f"conv 3x3, {c} channels", self.stays(y), work, "TFLOP/s", None
            yield f"its gradients, {c} channels", self.stays(to_x, to_f), 3 * work, "TFLOP/s", None

    def networks(self) -> Iterator[tuple]:
        for batch in self.sizes.batches:
            f = nn.compile(models.resnet50(), batch, engine=self.engine())
            yield f"ResNet-50, batch {batch}", partial(f, np.zeros((batch, 3, 224, 224), "f4")), 0, "ms", None

    def steps(self) -> Iterator[tuple]:
        """Yield a training step, and the host's work for many small kernels, by the table and as a graph."""
        x, w, v = filled("x", 64, 784), filled("w", 784, 128), filled("v", 128, 10)
        loss = cg.mean(cg.square(cg.relu(x @ w) @ v))
        updates = {p: p - 1e-4 * g for p, g in zip((w, v), cg.gradient(loss, [w, v]))}
        yield "step of a perceptron", cg.compile(loss, updates=updates, engine=self.engine()), 0, "ms", None
        y: cg.Node = filled("small", 4, 1)
        for _ in range(self.sizes.kernels):
            y = cg.cumsum(y, 0)
        for name, graphs in (("table", False), ("graph", True)):
            yield f"{self.sizes.kernels} small kernels, {name}", self.stays(y, graphs=graphs), 0, "ms", None

    def stays(self, *nodes: cg.Node, **options: Any) -> Callable[[], Any]:
        """Return a run of `nodes` whose operands and results stay on the device."""
        kept = [cg.Var(x.shape, x.dtype, name="kept").assign(np.zeros(x.shape, x.dtype)) for x in nodes]
        return cg.compile([], updates=dict(zip(kept, nodes)), engine=self.engine(**options))

    def on_gpu(self, *shape: int) -> Any:
        return self.torch.randn(*shape, device="cuda") if self.torch else None

    def synchronised(self, run: Callable[[], Any]) -> None:
        run()
        self.torch.cuda.synchronize()

    def seconds(self, run: Callable[[], Any]) -> float:
        """Return seconds of a run including its end: the median of some turns."""
        for _ in range(WARM):
            run()
        start = time.perf_counter()
        run()
        count, turns = max(1, int(self.sizes.least / max(time.perf_counter() - start, 1e-6))), []
        for _ in range(self.sizes.turns):
            start = time.perf_counter()
            for _ in range(count):
                run()
            turns.append((time.perf_counter() - start) / count)
        return statistics.median(turns)


def filled(name: str, *shape: int) -> cg.Var:
    return cg.Var(shape, name=name).assign(np.random.default_rng(0).standard_normal(shape, "float32"))


def torch_on_gpu() -> Any:
    """Return torch if it is installed and finds a GPU."""
    try:
        torch = import_module("torch")
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def main() -> None:
    try:
        gpu = describe_gpus()[0]
    except EngineError as error:
        print(f"nothing is measured: {error}")
        return
    found = []
    for name, took, figure, unit, beside in Bench(torch=torch_on_gpu()).rows():
        other = "" if beside is None else f"   torch {1e3 * beside:.3f} ms"
        print(f"{name:28} {1e3 * took:10.3f} ms {figure:10.2f} {unit}{other}", flush=True)
        found.append({"name": name, "seconds": took, "figure": figure, "unit": unit, "torch": beside})
    OUT.mkdir(exist_ok=True)
    (OUT / "cuda.json").write_text(json.dumps({"gpu": gpu, "rows": found}, indent=1))


if __name__ == "__main__":
    main()
