"""An op along any axis does what it does along the last one, and so does its gradient."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from tests.support.tolerance import assert_close

SHAPE = (4, 3, 5)
X = cg.Var(SHAPE, "float64", "x")
RNG = np.random.default_rng(0)
VALUE = RNG.permutation(np.linspace(0.4, 2.6, X.size)).reshape(SHAPE)  # no two are near one another
PLACES = np.array([2, 0, 2])

KEPT = {
    "softmax": lambda x, a: cg.softmax(x, a),
    "log_softmax": lambda x, a: cg.log_softmax(x, a),
    "logsumexp": lambda x, a: cg.logsumexp(x, a, keepdims=True),
    "cumsum": lambda x, a: cg.cumsum(x, a),
    "cumprod": lambda x, a: cg.cumprod(x - 1.5, a),
    "sort": lambda x, a: cg.sort(x, a),
    "falling sort": lambda x, a: cg.sort(x, a, descending=True),
    "flip": lambda x, a: cg.flip(x, a),
    "roll": lambda x, a: cg.roll(x, 2, a),
    "repeat": lambda x, a: cg.repeat(x, 2, a),
    "split": lambda x, a: cg.split(x, [1], a)[1],
    "concat": lambda x, a: cg.concat([x, x * x], a),
    "top_k": lambda x, a: cg.top_k(x, 2, a)[0],
    "top_k of the smallest": lambda x, a: cg.top_k(x, 2, a, False)[0],
    "take": lambda x, a: cg.take(x, PLACES, a),
    "take_along_axis": lambda x, a: cg.take_along_axis(x, cg.argsort(cg.sin(9 * x), a), a),
    "put_along_axis": lambda x, a: cg.put_along_axis(x, cg.argsort(cg.sin(9 * x), a), x * x, a),
    "put_along_axis, added": lambda x, a: cg.put_along_axis(x, cg.argsort(cg.sin(9 * x), a), x * x, a, "add"),
    "scatter": lambda x, a: cg.scatter(x, PLACES, cg.take(x * x, PLACES, a), "set", a),
    "scatter, multiplied": lambda x, a: cg.scatter(x, PLACES, cg.take(x * x, PLACES, a), "multiply", a),
    "scatter of the largest": lambda x, a: cg.scatter(x, PLACES[:2], cg.take(x, PLACES[:2] - 1, a), "max", a),
    "scatter of the smallest": lambda x, a: cg.scatter(x, PLACES[:2], cg.take(x, PLACES[:2] - 1, a), "min", a),
    "scatter_add": lambda x, a: cg.scatter_add(x, PLACES, cg.take(x * x, PLACES, a), a),
    "set_rows": lambda x, a: cg.set_rows(x, 1, 2 * cg.take_rows(x, 0, 2, axis=a), axis=a),
    "norm": lambda x, a: cg.norm(x, 3, a, keepdims=True),
    "largest norm": lambda x, a: cg.norm(x, np.inf, a, keepdims=True),
    "std": lambda x, a: cg.std(x, a, ddof=1, keepdims=True),
    **{
        name: lambda x, a, name=name: getattr(cg, name)(x, a, keepdims=True)
        for name in ("sum", "mean", "var", "prod", "min", "max", "ptp")
    },
}
DROPPED = {
    name: lambda x, a, name=name: getattr(cg, name)(x, a)
    for name in ("argmax", "argmin", "sum", "max", "logsumexp", "count_nonzero")
} | {
    "any": lambda x, a: cg.any(x > 2, a),
    "all": lambda x, a: cg.all(x > 1, a),
    "squeezed": lambda x, a: cg.squeeze(cg.take_rows(x, 1, 1, axis=a), a),
}
PLAIN = {  # whole numbers
    "argsort": lambda x, a: cg.argsort(x, a),
    "falling argsort": lambda x, a: cg.argsort(x, a, descending=True),
    "places of top_k": lambda x, a: cg.top_k(x, 3, a)[1],
}


@pytest.mark.parametrize("axis", [0, 1, -2, -3])
@pytest.mark.parametrize("name", KEPT)
def test_results_and_gradients_along_an_axis_are_those_along_the_last_one_with_axes_moved(name, axis):
    function = KEPT[name]
    results = [function(X, axis), cg.moveaxis(function(cg.moveaxis(X, axis, -1), -1), -1, axis)]
    weights = RNG.normal(size=results[0].shape)
    slopes = [cg.gradient(cg.sum(cg.sin(y) * weights), X) for y in results]
    got, want, slope, other = evaluate([*results, *slopes], {X: VALUE})
    assert_close(got, want, 10)
    assert_close(slope, other, 10)


@pytest.mark.parametrize("axis", [0, 1, -2, -3])
@pytest.mark.parametrize("name", [*DROPPED, *PLAIN])
def test_results_without_an_axis_and_places_are_those_along_the_last_one(name, axis):
    function = (DROPPED | PLAIN)[name]
    y = function(cg.moveaxis(X, axis, -1), -1)
    got, want = evaluate([function(X, axis), y if name in DROPPED else cg.moveaxis(y, -1, axis)], {X: VALUE})
    assert got.dtype == want.dtype
    assert_close(got, want)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_transforms_along_an_axis_are_those_along_the_last_one(name, axis):
    """Pairs of parts stand behind all axes."""
    function = getattr(cg, name)
    x = X if name == "rfft" else cg.Var((*SHAPE, 2), "float64", "z")
    moved = function(cg.moveaxis(x, axis, -1 if name == "rfft" else -2), 6, 2)
    results = [function(x, 6, axis), cg.moveaxis(moved, -1 if name == "irfft" else -2, axis)]
    weights = RNG.normal(size=results[0].shape)
    slopes = [cg.gradient(cg.sum(y * weights), x) for y in results]
    got, want, slope, other = evaluate([*results, *slopes], {x: RNG.normal(size=x.shape)})
    assert_close(got, want, 50)
    assert_close(slope, other, 50)
