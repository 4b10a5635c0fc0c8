"""``cgraph warmup``: compile kernels ahead of time, so that the first run does not wait for them."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np

from cgraph.cli.model import load_model
from cgraph.engine.cpu.threads import interpreter
from cgraph.function import compile
from cgraph.ir.graph import OPS, Node
from cgraph.kernels.store import store
from cgraph.kernels.target import host_target
from cgraph.ops.leaf import Const, Var
from cgraph.terminal import say, visible

Build = Callable[[], Any]


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "warmup",
        help="compile common kernels, or those of models, and store them",
        description="Compile the kernels that networks commonly need, or those of the models, and store them on disk.",
    )
    parser.add_argument("models", nargs="*", help="models; without any, common layers")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compile the interpreter and the graphs, with a progress bar, and print the time and the number of kernels."""
    todo = models(args.models) if args.models else COMMON
    begin, misses, loaded = perf_counter(), store().misses, store().loaded
    store().load(interpreter(), host_target())
    with progress(len(todo)) as advance:
        for name, build in todo.items():
            advance(name)
            build()
    seconds = perf_counter() - begin
    misses, loaded = store().misses - misses, store().loaded - loaded
    say(f"{len(todo)} graphs in {seconds:.1f} s: {misses} kernels compiled, {loaded} were there, in {store().folder}")
    return 0


def models(references: list[str]) -> dict[str, Build]:
    return {name: compile_of(name) for name in references}


def compile_of(reference: str) -> Build:
    return lambda: load_model(reference).compiled()


@contextmanager
def progress(total: int) -> Iterator[Callable[[str], None]]:
    """Yield a function of the name of each graph as it begins: a rich bar, or plain lines without rich."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
    except ImportError:
        count = iter(range(1, total + 1))
        yield lambda name: say(f"{next(count):>4} of {total}  {name}")
        return
    console = Console(stderr=True)
    columns = TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    with Progress(*columns, transient=True, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=total)

        def advance(name: str) -> None:
            bar.update(task, advance=1, description=visible(name, ""))

        yield advance


def op(name: str, *args: Any, **options: Any) -> Any:
    return OPS[name](*args, **options)


def filters(*shape: int) -> Node:
    """Return filters from a fixed seed."""
    return Const(np.random.default_rng(0).standard_normal(shape, np.float32), copy=False)


def convolution(c: int, k: int, size: int, stride: int, groups: int = 1) -> Build:
    """Return a convolution with shift and relu of a picture of 28 x 28."""

    def build() -> Any:
        x = Var((1, c, 28, 28))
        f = filters(k, c // groups, size, size)
        y = op("conv2d", x, f, stride, size // 2, 1, groups) + op("reshape", filters(k), (-1, 1, 1))
        return compile(op("relu", y), [x])

    return build


def of_one(function: Callable[[Node], Any], *shape: int) -> Build:
    """Return a function of one operand."""

    def build() -> Any:
        x = Var(shape)
        return compile(function(x), [x])

    return build


def of_two(function: Callable[[Node, Node], Any], *shapes: tuple[int, ...]) -> Build:
    """Return a function of two operands."""

    def build() -> Any:
        x, y = (Var(shape) for shape in shapes)
        return compile(function(x, y), [x, y])

    return build


def unary(name: str, *args: Any, **options: Any) -> Callable[[Node], Any]:
    return lambda x: op(name, x, *args, **options)


IMAGE = (1, 32, 28, 28)
COMMON: dict[str, Build] = {
    "convolution 3x3": convolution(32, 64, 3, 1),
    "convolution 3x3, stride 2": convolution(32, 64, 3, 2),
    "convolution 7x7 of a picture": convolution(3, 64, 7, 2),
    "convolution 1x1": convolution(64, 32, 1, 1),
    "depthwise 3x3": convolution(32, 32, 3, 1, 32),
    "depthwise 3x3, stride 2": convolution(32, 32, 3, 2, 32),
    "max pooling": of_one(unary("max_pool2d", 2), *IMAGE),
    "average pooling": of_one(unary("avg_pool2d", 2), *IMAGE),
    "mean of channels": of_one(unary("mean", (2, 3)), *IMAGE),
    "sum of images": of_two(lambda x, y: op("relu", x + y), IMAGE, IMAGE),
    "joined images": of_two(lambda x, y: op("concat", [x, y], 1), IMAGE, IMAGE),
    "product of matrices": of_two(lambda x, y: x @ y, (64, 256), (256, 128)),
    "softmax": of_one(unary("softmax"), 4, 1000),
    "sum": of_one(unary("sum", 1), 64, 1000),
    **{name: of_one(unary(name), 4096) for name in ("exp", "log", "sqrt", "tanh", "sigmoid", "relu", "sin", "cos")},
}
