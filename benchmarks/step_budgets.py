"""A training step within budgets from the least one to none: bytes, time, and whether ten steps give the same bits.

    python -m benchmarks.step_budgets [resnet20 | lenet] [--budgets N] [--batch N] [--threads N]

Every row is a training of its own with the same first weights. *Same* compares all losses and all weights after ten
steps with those without a budget. Seconds of compiling are the processor's, of a step the median by the clock.
"""

import argparse
import re
import time
from typing import Any

import numpy as np

from cgraph.errors import BudgetError
from nn.losses import cross_entropy
from nn.models.lenet import lenet
from nn.models.resnet import resnet20
from nn.optim.optimiser import Optimiser
from nn.step import training_step

MODELS = {"resnet20": (resnet20, (3, 32, 32)), "lenet": (lenet, (1, 28, 28))}
STEPS = 10


def trained(name: str, size: int, budget: int | None, threads: int) -> tuple[dict[str, Any], list[Any]]:
    """Return figures of ten steps within a budget; their losses, and the weights afterwards."""
    make, image = MODELS[name]
    rng = np.random.default_rng(0)
    batch = rng.random((size, *image), "float32"), rng.integers(0, 10, size).astype("int32")
    model, start = make(0), time.process_time()
    step = training_step(model, cross_entropy, Optimiser(), batch, budget=budget, threads=threads)
    compiled, losses, seconds = time.process_time() - start, [], []
    for _ in range(STEPS):
        begin = time.perf_counter()
        losses.append(step(*batch))
        seconds.append(time.perf_counter() - begin)
    plan = step.function.compiled
    assert plan is not None
    figures = {
        "bytes": plan.nbytes,
        "steps": len(plan.layout.steps),
        "s": float(np.median(seconds)),
        "compile": compiled,
    }
    return figures, [losses, [x.value.tobytes() for x in model.variables().values()]]


def least_budget(name: str, size: int, threads: int) -> int:
    """Return the least number of bytes that a refusal names."""
    try:
        trained(name, size, 64, threads)
    except BudgetError as refused:
        return int(re.search(r"the least budget.* is (\d+) bytes", str(refused))[1])  # type: ignore[index]
    raise AssertionError("64 bytes were enough")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.step_budgets", description=__doc__)
    parser.add_argument("network", nargs="?", default="resnet20", choices=MODELS)
    parser.add_argument("--budgets", type=int, default=20)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    free, want = trained(args.network, args.batch, None, args.threads)
    least = least_budget(args.network, args.batch, args.threads)
    names = ("budget", "plan", "of the free one", "steps", "a step, s", "compiling, s", "same")
    print(f"| {' | '.join(names)} |\n|{'---:|' * len(names)}")
    for budget in [None, *np.linspace(free["bytes"], least, args.budgets).astype(int).tolist()]:
        found, got = trained(args.network, args.batch, budget, args.threads)
        print(
            f"| {budget or 'free'} | {found['bytes']} | {found['bytes'] / free['bytes']:.3f} | {found['steps']} "
            f"| {found['s']:.3f} | {found['compile']:.1f} | {'yes' if got == want else 'no'} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
