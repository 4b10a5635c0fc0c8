"""The cost of a new size for a function of arrays whose sizes vary: processor seconds, bytes of the plan, kernels
compiled.

python -m benchmarks.sizes
"""

import time
from unittest.mock import patch

import numpy as np

import cgraph as cg
from cgraph.kernels.store import KernelStore
from nn.models import resnet18

WIDTH = 256


def resnet() -> tuple[cg.SizedFunction, list[dict[str, int]]]:
    """Return ResNet-18 with frozen weights, for batches up to 8."""
    model = resnet18(0)

    def build(sizes):
        x = cg.Var((sizes["batch"], 3, 224, 224), name="x")
        return model(x), [x]

    frozen = list(model.variables().values())
    function = cg.compile_sizes(build, {"x": ("batch", 3, 224, 224)}, {"batch": 8}, freeze=frozen)
    return function, [{"batch": n} for n in (4, 3, 1, 7)]


def attention() -> tuple[cg.SizedFunction, list[dict[str, int]]]:
    """Return one layer of attention, for batches up to 8 and sequences up to 512."""
    rng = np.random.default_rng(0)
    weights = [cg.Const(rng.standard_normal((WIDTH, WIDTH)).astype("float32") / WIDTH**0.5) for _ in range(4)]

    def build(sizes):
        x = cg.Var((sizes["batch"], sizes["length"], WIDTH), name="x")
        q, k, v = (x @ w for w in weights[:3])
        return cg.softmax(q @ np.swapaxes(k, 1, 2) / WIDTH**0.5, 2) @ v @ weights[3] + x, [x]

    shapes, most = {"x": ("batch", "length", WIDTH)}, {"batch": 8, "length": 512}
    sizes = [{"batch": b, "length": n} for b, n in ((8, 511), (3, 100), (1, 1), (8, 64))]
    return cg.compile_sizes(build, shapes, most), sizes


def main() -> None:
    compiled = []
    made = KernelStore._compile_and_store

    def counted(store: KernelStore, *args):
        compiled.append(args)
        return made(store, *args)

    with patch.object(KernelStore, "_compile_and_store", counted):
        for name, prepare in {"resnet18": resnet, "attention": attention}.items():
            begin = time.process_time()
            function, sizes = prepare()
            print(f"{name}, the largest: {time.process_time() - begin:.3f} s, {function.nbytes} bytes")
            for size in sizes:
                before, begin = len(compiled), time.process_time()
                nbytes = function.at(**size).nbytes
                seconds = time.process_time() - begin
                print(f"  {size}: {seconds:.3f} s, {nbytes} bytes, {len(compiled) - before} kernels compiled")


if __name__ == "__main__":
    main()
