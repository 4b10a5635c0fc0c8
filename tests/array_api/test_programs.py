"""Random programs of functions, indices, assignments and copies give what NumPy gives, whenever a value is computed.

NumPy's side copies every result, so that an assignment changes one array.
"""

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cgraph import array_api as xp
from cgraph.array_api import values
from cgraph.function import compile
from cgraph.storage.function_cache import FunctionCache
from tests.support.tolerance import assert_close

LAZY: dict[str, Callable[..., Any]] = {
    "add": lambda m, x, y: x + y,
    "subtract": lambda m, x, y: x - y,
    "reflected": lambda m, x, y: 2 - x,
    "product": lambda m, x, y: x * y,
    "quotient": lambda m, x, y: x / (m.abs(y) + 1),
    "largest": lambda m, x, y: m.maximum(x, y),
    "choice": lambda m, x, y: m.where(x > y, x, y),
    "sum of rows": lambda m, x, y: m.sum(x, axis=-1 if x.ndim else None, keepdims=True),
    "sum of all": lambda m, x, y: m.sum(x),
    "mean of columns": lambda m, x, y: m.mean(x, axis=0),
    "part": lambda m, x, y: x[1:],
    "element": lambda m, x, y: x[-1],
    "reversed": lambda m, x, y: x[::-1],
    "new axis": lambda m, x, y: x[None, ...],
    "flat": lambda m, x, y: m.reshape(x, (-1,)),
    "last two turned": lambda m, x, y: x.mT if x.ndim >= 2 else m.flip(x),
    "joined": lambda m, x, y: m.concat([m.reshape(x, (-1,)), m.reshape(y, (-1,))]),
    "stacked": lambda m, x, y: m.stack([x, x + 1], axis=-1),
    "sorted": lambda m, x, y: m.sort(x),
    "running": lambda m, x, y: m.cumulative_sum(m.reshape(x, (-1,))),
    "other dtype": lambda m, x, y: m.astype(x, m.float64 if x.dtype == m.float32 else m.float32),
    "clipped": lambda m, x, y: m.clip(x, min=-2, max=3),
}
EAGER: dict[str, Callable[..., Any]] = {
    "mask": lambda m, x, y: x[x > 0],
    "positions": lambda m, x, y: m.nonzero(x)[0],
    "members": lambda m, x, y: m.unique_values(x),
}
MOST_SIZE = 60


def changed(x: Any, how: int, m: Any) -> None:
    """Change an array in place."""
    if how == 0:
        x += 1
    elif how == 1:
        x *= 2
    elif how == 2 and x.ndim:
        x[0] = 5
    elif how == 3 and x.ndim:
        x[..., -1:] = m.zeros((1,), dtype=x.dtype)
    elif how == 4:
        x[x > 1] = 1
    else:
        x[...] = 7


class Program:
    """Arrays of the standard and NumPy's, by the same steps."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        starts = self.rng.integers(-4, 5, (2, 3)).astype("f8"), self.rng.integers(-4, 5, (2, 3)), np.arange(3.0)
        self.pairs = [(xp.asarray(x), x.copy()) for x in starts]

    def draw(self) -> tuple[Any, np.ndarray]:
        return self.pairs[self.rng.integers(max(len(self.pairs) - 5, 0), len(self.pairs))]

    def step(self) -> None:
        kind = self.rng.integers(10)
        if kind < 6:
            self.apply(LAZY, lazily=True)
        elif kind == 6:
            self.apply(EAGER, lazily=False)
        elif kind == 7:
            x, want = self.draw()
            how = int(self.rng.integers(6))
            changed(x, how, xp)
            changed(want, how, np)
        elif kind == 8:
            self.copy()
        else:
            x, want = self.draw()
            same(x, want)
            assert not x.is_lazy
        for x, want in self.pairs:
            assert x.dtype == want.dtype and x.shape == want.shape and x.size == want.size

    def apply(self, functions: dict[str, Callable[..., Any]], lazily: bool) -> None:
        (x, a), (y, b) = self.draw(), self.draw()
        name = list(functions)[self.rng.integers(len(functions))]
        try:
            want = functions[name](np, a, b)
        except (ValueError, IndexError, TypeError):
            return
        if np.asarray(want).size > MOST_SIZE or not np.asarray(want).size:
            return
        was_lazy = x.is_lazy
        got = functions[name](xp, x, y)
        assert x.is_lazy == was_lazy or not lazily, f"{name} computes its operand"
        assert got.is_lazy or not (lazily and was_lazy), f"{name} of a lazy array computes it"
        self.pairs.append((got, np.array(want)))

    def copy(self) -> None:
        x, want = self.draw()
        how = self.rng.integers(4)
        if how == 0:
            self.pairs.append((xp.asarray(x, copy=True), want.copy()))
        elif how == 1:
            self.pairs.append((xp.asarray(x), want))  # the same array
            assert self.pairs[-1][0] is x
        elif how == 2:
            shown = np.from_dlpack(x)
            same(xp.asarray(shown, copy=True), want)
        else:
            self.pairs.pop(int(self.rng.integers(len(self.pairs))) if len(self.pairs) > 5 else -1)
            gc.collect(0)


def same(x: Any, want: np.ndarray) -> None:
    got = np.asarray(x)
    assert got.dtype == want.dtype and got.shape == want.shape
    assert_close(got, want, 20)


def run(seed: int) -> None:
    program = Program(seed)
    with np.errstate(all="ignore"):
        for _ in range(25):
            program.step()
    for i in program.rng.permutation(len(program.pairs)):
        same(*program.pairs[i])


@pytest.mark.parametrize("seed", range(8))
def test_a_program_gives_what_numpy_gives(seed):
    run(seed)


@pytest.mark.parametrize("part", range(6))
def test_programs_of_the_reference_engine_give_what_numpys_give(part, monkeypatch):
    """Many more programs, for nothing is compiled."""
    monkeypatch.setattr(
        values, "compile", lambda outputs, inputs, threads: compile(outputs, inputs, engine="reference")
    )
    monkeypatch.setattr(values, "FUNCTIONS", FunctionCache(1000, 1 << 20))
    monkeypatch.setattr(values, "nbytes_of", lambda function: 1)
    for seed in range(100 + 10 * part, 110 + 10 * part):
        run(seed)
