"""Derivatives of a graph by central differences in float64: what every gradient is compared with."""

from collections.abc import Callable, Sequence

import numpy as np

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.ir.graph import Node
from tests.support.tolerance import NEAR, assert_near

STEP = 1e-5
RTOL = NEAR["central differences"].rtol


def variables(arrays: Sequence[np.ndarray]) -> list[cg.Var]:
    """One Var per array, which holds it."""
    return [cg.Var(a.shape, a.dtype, f"x{i}").assign(a) for i, a in enumerate(arrays)]


def directions(arrays: Sequence[np.ndarray], seed: int = 1) -> list[np.ndarray]:
    """One random direction per array."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=a.shape).astype(a.dtype) for a in arrays]


def slope(node: Node, xs: Sequence[cg.Var], along: Sequence[np.ndarray], step: float = STEP) -> np.ndarray:
    """How the node's value changes when all `xs` move along their directions.

    By two central differences, joined so that the error is one of ``step**4`` (Richardson's extrapolation).
    """
    values = [x.value for x in xs]
    found = []
    for h in (step, step / 2):
        ends = [evaluate([node], dict(zip(xs, moved(values, along, sign * h))))[0] for sign in (1, -1)]
        found.append((ends[0] - ends[1]) / (2 * h))
    return (4 * found[1] - found[0]) / 3


def moved(values: Sequence[np.ndarray], along: Sequence[np.ndarray], by: float) -> list[np.ndarray]:
    return [v + by * a for v, a in zip(values, along)]


def close(got: np.ndarray, want: np.ndarray) -> None:
    """Equal up to what central differences in float64 can tell."""
    assert got.shape == want.shape
    scale = max(1.0, float(np.abs(want).max(initial=0)))
    assert_near(got, want, "central differences", scale)


def weighted(y: Node, seed: int = 7) -> Node:
    """A number that depends on every element of `y`."""
    weights = np.random.default_rng(seed).normal(size=y.shape)
    return cg.sum(y * cg.Const(weights.astype(y.dtype)))


def check_first(f: Callable[..., Node], arrays: Sequence[np.ndarray]) -> None:
    """gradient and jvp of ``f(*arrays)`` agree with differences."""
    xs, along = variables(arrays), directions(arrays)
    y = f(*xs)
    loss = weighted(y)
    found = evaluate(cg.gradient(loss, xs))
    assert [g.dtype for g in found] == [x.dtype for x in xs]
    close(np.asarray(sum(np.vdot(g, d) for g, d in zip(found, along))), slope(loss, xs, along))
    change = cg.jvp(y, xs, [cg.Const(d) for d in along])
    close(evaluate([change])[0], slope(y, xs, along))


def check_second(f: Callable[..., Node], arrays: Sequence[np.ndarray]) -> None:
    """The gradient of a gradient agrees with differences of it."""
    xs, along = variables(arrays), directions(arrays, 2)
    first = cg.gradient(weighted(f(*xs)), xs)
    total = sum((weighted(g, 10 + i) for i, g in enumerate(first)), start=cg.Const(0.0))
    found = evaluate(cg.gradient(total, xs))
    close(np.asarray(sum(np.vdot(g, d) for g, d in zip(found, along))), slope(total, xs, along))
