"""Extra work of rematerialisation, compared with the optimum of a mixed-integer program.

    python -m benchmarks.checkmate [graphs] [seconds of the solver per program]

Training graphs of up to 60 steps, each in ten budgets from the least that can be met up to the plan without
rematerialisation. Extra work is counted in multiply-adds; an element that is read or written counts as 8 of them. The
program counts the same
bytes, of the same sizes and with the same values kept (`benchmarks.checkmate_program`). It is solved with first runs in
the schedule's order, and in that of our order, which may delay first runs; the better one counts. If the solver's time
is up, the ratio is that to its bound, with a `<`: the true ratio is at most that.
"""

import re
import sys
from collections.abc import Callable, Sequence

import numpy as np

import cgraph as cg
import nn
from benchmarks.checkmate_program import Optimum, in_order, optimum
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.record import Record
from cgraph.rematerialise.least_work import least_work
from cgraph.rematerialise.rebuild import cost_of, reruns_of
from cgraph.rematerialise.reruns import Reruns
from cgraph.schedule.dag import least_peak
from nn.layer import Layer, initialise
from nn.layers.attention import MultiHeadAttention
from nn.layers.norm import LayerNorm
from nn.losses import cross_entropy
from nn.mode import Mode

BUDGETS, SECONDS, RATE = 10, 60.0, 0.1
Step = Callable[..., cg.Function]  # accepts the options of `compile`


class Plus(Layer):
    """``function(x + inner(x))``"""

    inner: Layer
    function: Callable[[cg.Node], cg.Node] = cg.relu

    def build(self, *xs: cg.Node, mode: Mode) -> cg.Node:
        return self.function(xs[0] + self.inner(xs[0], mode=mode))


def step_of(model: Layer, *shape: int) -> Step:
    """Return a step of plain gradient descent that makes a model's result small."""
    model = initialise(model, 0)
    x = cg.Var(shape, name="x")
    loss = cg.mean(cg.square(model(x, mode=Mode(training=True))))
    weights = list(model.parameters().values())
    updates = {w: w - RATE * g for w, g in zip(weights, cg.gradient(loss, weights))}
    return lambda **options: cg.compile(loss, [x], updates=updates, **options)


def lenet_with_adam() -> Step:
    arrays = np.zeros((512, 1, 12, 12), "float32"), np.zeros(512, "int32")
    model = nn.models.lenet(0, image=(1, 12, 12), classes=4)
    return lambda **options: nn.training_step(model, cross_entropy, nn.Optimiser(), arrays, **options).function


def convolutions(*windows: int) -> Layer:
    """Return convolutions of 16 channels with relu between them."""
    parts: list[Layer] = []
    for k in windows:
        parts += [nn.Activation(cg.relu)] * bool(parts) + [nn.Conv2d(16, 16, k, pad="same")]
    return nn.Sequential(*parts)


IMAGES, TOKENS, ROWS = (16, 16, 16, 16), (8, 32, 32), (64, 8, 128)
GRAPHS: dict[str, Callable[[], Step]] = {
    "MLP of 4 layers": lambda: step_of(nn.models.mlp(0, (64, 128, 128, 64, 10)), 1024, 64),
    "MLP of 6 layers": lambda: step_of(nn.models.mlp(0, (64,) * 7), 1024, 64),
    "LeNet": lambda: step_of(nn.models.lenet(0, (1, 12, 12), 4), 256, 1, 12, 12),
    "LeNet with Adam": lenet_with_adam,
    "convolution with batch norm": lambda: step_of(nn.ConvNorm(8, 8, 3, pad=1), 16, 8, 16, 16),
    "residual block": lambda: step_of(Plus(convolutions(3, 3)), *IMAGES),
    "two residual blocks": lambda: step_of(nn.Sequential(*[Plus(convolutions(3, 3)) for _ in range(2)]), *IMAGES),
    "bottleneck": lambda: step_of(Plus(convolutions(1, 3, 1)), *IMAGES),
    "attention": lambda: step_of(Plus(MultiHeadAttention(128, 4, causal=True)), *ROWS),
    "mixing with layer norm": lambda: step_of(
        Plus(nn.Sequential(LayerNorm(32), nn.Linear(32, 128), nn.Activation(cg.tanh), nn.Linear(128, 32))), *TOKENS
    ),
}


class Found(Record):
    """The result for one budget.

    Fields
        budget: bytes
        extra, steps: work that is computed again, and number of steps
        best: optimum of the program
    """

    budget: int
    extra: int
    steps: int
    best: Optimum

    @property
    def ratio(self) -> float:
        """Extra work over the program's, or over its bound if that is not proved; infinite without a bound."""
        known = self.best.found if self.best.is_proved else self.best.bound
        if self.extra <= 0:
            return 1.0
        return np.inf if known is None or known <= 0 else self.extra / known


def work(function: cg.Function) -> int:
    """Return the work of all steps."""
    return sum(map(cost_of, function.compiled.layout.steps))  # type: ignore[union-attr]


def least_of(step: Step) -> int:
    """Return the least budget that a refusal names."""
    try:
        step(recompute=1)
    except cg.BudgetError as error:
        named = re.search(r"is (\d+) bytes", str(error))
        assert named is not None
        return int(named[1])
    raise AssertionError("a training step fits in a byte")


def problem_of(step: Step) -> Reruns:
    compiled = step().compiled
    assert compiled is not None
    return reruns_of(compiled.layout, CpuEngine().alignment)


def compared(step: Step, budgets: Sequence[int], seconds: float) -> list[Found]:
    """Return the rematerialised work within each budget, and the program's optimum."""
    plain, problem = step(), problem_of(step)
    found = []
    for budget in budgets:
        again = step(recompute=budget)
        assert again.nbytes <= budget
        steps = len(again.compiled.layout.steps) - len(plain.compiled.layout.steps)  # type: ignore[union-attr]
        extra = work(again) - work(plain)
        found.append(Found(budget, extra, steps, best_of(problem, budget, seconds, extra) if extra else Optimum(0, 0)))
    return found


def best_of(problem: Reruns, budget: int, seconds: float, known: int) -> Optimum:
    """Return the better optimum, if it costs at most `known`, for first runs as scheduled and as delayed by a
    search.
    """
    orders = [range(len(problem.cost)), least_work(problem, budget, [range(len(problem.cost))])]
    firsts = dict.fromkeys(tuple(dict.fromkeys(order)) for order in orders if order is not None)
    found = [optimum(in_order(problem, first), budget, seconds, known) for first in firsts]
    known = [x.found for x in found if x.found is not None]
    bounds = [-np.inf if x.bound is None else x.bound for x in found]
    return Optimum(min(known, default=None), min(bounds))


def budgets_of(step: Step, count: int) -> list[int]:
    """Return equidistant budgets from the least one to just below the plan without rematerialisation."""
    return np.linspace(least_of(step), step().nbytes, count + 1).astype(int).tolist()[:-1]


def lines(name: str, step: Step, seconds: float) -> list[str]:
    """Yield a line of a Markdown table for each budget."""
    steps, low = len(step().compiled.layout.steps), least_peak(problem_of(step).dag)  # type: ignore[union-attr]
    rows = []
    for x in compared(step, budgets_of(step, BUDGETS), seconds):
        best = "–" if x.best.found is None else f"{x.best.found:,.0f}"
        ratio = f"{'' if x.best.is_proved else '< '}{x.ratio:.3f}"
        share = x.budget / step().nbytes
        rows.append(f"| {name}, {steps} | {x.budget:,} | {share:.2f} | {x.steps} | {x.extra:,} | {best} | {ratio} |")
    return [*rows, f"| | every order needs {low:,} | | | | | |"]


def main(words: Sequence[str]) -> None:
    seconds = next((float(word) for word in words if word.replace(".", "").isdigit()), SECONDS)
    print("| graph, steps | budget | of all | again | extra work | optimum | ratio |\n|---|---|---|---|---|---|---|")
    for name in [name for name in GRAPHS if name in words] or GRAPHS:
        for line in lines(name, GRAPHS[name](), seconds):
            print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
