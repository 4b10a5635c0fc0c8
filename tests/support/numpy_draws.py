"""Random operands and arguments for functions that NumPy has, too: `CALLS` by name."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.support.draws import Draws

CALLS: dict[str, Callable[[Draws], tuple[Any, Any]]] = {}


def drawn(*names: str) -> Callable[[Any], Any]:
    """List a function that draws ``given, arguments`` under a function's name; where there are several, with the name.

    `given` are the arrays, `arguments` what follows them, in a list, then by name in a dict.
    """

    def listed(function: Any) -> Any:
        for name in names:
            CALLS[name] = function if len(names) == 1 else lambda d, name=name: function(d, name)
        return function

    return listed


def array(d: Draws, least: int = 1, most: int = 4) -> np.ndarray:
    return d.drawn(*(d.whole(0, 4) if d.whole(0, 9) == 0 else n for n in d.shape(least, most)))


def full(d: Draws, least: int = 1, most: int = 4, largest: int = 4) -> np.ndarray:
    """With elements along every axis."""
    return d.drawn(*d.shape(least, most, largest))


@drawn("concat", "stack")
def joined(d: Draws, name: str) -> Any:
    x = array(d)
    xs = [x, d.normal(*x.shape), x][: d.whole(1, 3)]
    return [xs], [d.axis(x.ndim + (name == "stack"))] if d.of(True, False) else d.of([], [None] * (name == "concat"))


@drawn("roll")
def rolled(d: Draws) -> Any:
    x = array(d)
    if d.of(True, False):
        return [x], [d.whole(-5, 5)]
    axes = d.axes(x.ndim)
    return [x], d.of([[d.whole(-5, 5) for _ in axes], axes], [d.whole(-5, 5), axes], [3, axes[0]])


@drawn("tile")
def tiled(d: Draws) -> Any:
    return [array(d)], [d.of(2, [2, 1, 3], [2], [1, 0, 2, 1, 2])]


@drawn("repeat")
def repeated(d: Draws) -> Any:
    x = array(d)
    return [x], [d.whole(0, 3), *d.of([], [d.axis(x.ndim)])]


@drawn("flip")
def flipped(d: Draws) -> Any:
    x = array(d)
    return [x], d.of([], [d.axis(x.ndim)], [tuple(d.axes(x.ndim))])


@drawn("split")
def cut(d: Draws) -> Any:
    parts, x = d.whole(1, 3), d.drawn(6, 6, 6)
    return [x], [d.of(parts, [1, 4], [2], [0, 3, 3], [2, 9]), *d.of([], [d.axis(3)])]


@drawn("moveaxis")
def moved(d: Draws) -> Any:
    x = array(d)
    some = d.axes(x.ndim)
    places = d.axes(x.ndim, x.ndim)[: len(some)]
    return [x], d.of([some, places], [some[0], places[0]])


@drawn("swapaxes")
def swapped(d: Draws) -> Any:
    x = array(d)
    return [x], [d.axis(x.ndim), d.axis(x.ndim)]


@drawn("expand_dims")
def wider(d: Draws) -> Any:
    x = array(d)
    return [x], [d.of(d.axis(x.ndim + 1), tuple(d.axes(x.ndim + 2, 2)[:2]))]


@drawn("squeeze")
def narrower(d: Draws) -> Any:
    shape = list(d.shape(1, 4))
    some = d.axes(len(shape))
    for a in some:
        shape[a] = 1
    return [d.drawn(*shape)], d.of([], [tuple(some)], [some[0]])


@drawn("transpose")
def turned(d: Draws) -> Any:
    x = array(d)
    return [x], d.of([], [d.axes(x.ndim, x.ndim)])


@drawn("reshape")
def shaped(d: Draws) -> Any:
    x = full(d, 2)
    return [x], [d.of(-1, (-1, x.shape[-1]), (x.shape[0], -1), x.shape[::-1], (*x.shape, 1))]


@drawn("triu", "tril")
def one_side(d: Draws, _: str) -> Any:
    return [array(d, 2)], d.of([], [d.whole(-4, 4)])


@drawn("diagonal", "trace")
def on_diagonal(d: Draws, name: str) -> Any:
    x = full(d, 2)
    axes = [int(a) for a in d.rng.permutation(x.ndim)[:2]]
    return [x], d.of([], [d.whole(-4, 4)], [d.whole(-4, 4), *axes], [0, axes[0] - x.ndim, axes[1]])


@drawn("diag")
def diagonal(d: Draws) -> Any:
    return [full(d, 1, 2)], d.of([], [d.whole(-4, 4)])


@drawn("eye")
def unit(d: Draws) -> Any:
    n, m = d.whole(1, 5), d.whole(1, 5)
    return [], d.of([n, None, 0, "float64"], [n, m, d.whole(-4, 4), "int32"], [n, m, 1, "float32"])


@drawn("arange")
def spaced(d: Draws) -> Any:
    return [], d.of([d.whole(0, 5)], [d.whole(-5, 0), d.whole(0, 5)], [5, -2, -2], [0.0, 2.0, 0.25], [1, 9, 2, "int8"])


@drawn("take")
def taken(d: Draws) -> Any:
    x = full(d)
    axis = d.axis(x.ndim)
    n = x.shape[axis]
    if d.of(True, False):
        return [x, d.numbers("int64", *d.shape(0, 2), low=-n, high=n - 1)], [axis]
    return [x, d.numbers("int32", *d.shape(0, 2), low=-x.size, high=x.size - 1)], []


@drawn("take_along_axis")
def taken_along(d: Draws) -> Any:
    x = full(d)
    axis = d.axis(x.ndim)
    n = x.shape[axis]
    shape = [1 if d.whole(0, 2) == 0 else m for m in x.shape]
    shape[axis] = d.whole(1, 5)
    return [x, d.numbers("int64", *shape, low=-n, high=n - 1)], [axis]


@drawn("sort", "argsort")
def ordered(d: Draws, name: str) -> Any:
    x = d.numbers(d.of("float32", "int8", "uint16"), *d.shape(1, 3, 6), low=-3, high=3)
    return [x], d.of([], [None], [d.axis(x.ndim)]), {"kind": "stable"}


@drawn("cumsum", "cumprod")
def running(d: Draws, _: str) -> Any:
    x = full(d)
    return [x], d.of([], [d.axis(x.ndim)])


@drawn("searchsorted")
def searched(d: Draws) -> Any:
    row = np.sort(d.numbers("int32", d.whole(0, 7), low=-3, high=3))
    return [row, d.numbers("int32", *d.shape(0, 2), low=-4, high=4)], d.of([], ["left"], ["right"])


@drawn("digitize")
def binned(d: Draws) -> Any:
    bins = np.sort(d.numbers("float32", d.whole(1, 5), low=-3, high=3))
    return [d.numbers("float32", *d.shape(1, 2), low=-4, high=4), bins], d.of([], [True], [False])


@drawn("var", "std")
def spread(d: Draws, _: str) -> Any:
    x = d.normal(*(n + 2 for n in d.shape(1, 3)))
    return [x], d.of([], [d.axis(x.ndim)], [tuple(d.axes(x.ndim))]), d.maybe(ddof=1, keepdims=True)


@drawn("count_nonzero", "ptp", "sum", "prod", "min", "max", "mean", "any", "all")
def reduced(d: Draws, _: str) -> Any:
    x = d.numbers(d.of("float32", "int32"), *d.shape(1, 3), low=-1, high=2)
    return [x], d.of([], [d.axis(x.ndim)], [tuple(d.axes(x.ndim))]), d.maybe(keepdims=True)


@drawn("argmin", "argmax")
def placed(d: Draws, _: str) -> Any:
    x = d.numbers("float32", *d.shape(1, 3), low=-1, high=1)
    return [x], d.of([], [d.axis(x.ndim)]), d.maybe(keepdims=True)


@drawn("dot", "inner")
def products(d: Draws, name: str) -> Any:
    k = d.whole(1, 4)
    x = d.normal(*d.shape(0, 2), k)
    y = d.of(d.normal(k), d.normal(*d.shape(1, 1), *((k, d.whole(1, 3)) if name == "dot" else (k,))))
    return [x, d.of(y, np.float32(3))], []


@drawn("vdot", "outer", "kron")
def pairs(d: Draws, name: str) -> Any:
    x = full(d, 1, 2)
    return [x, x[::-1].copy() if name == "vdot" else full(d, 1, 2)], []


@drawn("tensordot")
def contracted(d: Draws) -> Any:
    x, y = d.normal(2, 3, 4), d.normal(3, 4, 2)
    return d.of(
        ([x, y], []), ([x, y], [([0], [2])]), ([x, y], [([1, 2], [0, 1])]), ([x, d.normal(4, 5)], [1]), ([x, y], [0])
    )


@drawn("clip")
def held(d: Draws) -> Any:
    return [full(d)], d.of([-1, 1], [None, 1], [-1, None])


@drawn("pad")
def padded(d: Draws) -> Any:
    x = full(d, 1, 3)
    each = [(d.whole(0, 2), d.whole(0, 2)) for _ in x.shape]
    widths = d.of(2, (1, 2), each, [(0, 0)] * x.ndim)
    return d.of(
        ([x], [widths]), ([x], [widths, "edge"]), ([x], [widths, "reflect"]), ([x], [widths], {"constant_values": 7})
    )


@drawn("broadcast_to")
def broad(d: Draws) -> Any:
    shape = d.shape(1, 4)
    return [d.drawn(*[d.of(1, n) for n in shape][d.whole(0, len(shape) - 1) :])], [shape]


@drawn("where")
def chosen(d: Draws) -> Any:
    shape = d.shape(1, 3)
    x, y = (d.drawn(*(d.of(1, n, n) for n in shape)) for _ in range(2))
    return [d.rng.random(shape) < 0.5, x, y], []
