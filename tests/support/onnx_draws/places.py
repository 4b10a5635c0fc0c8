"""Elements by their places."""

import numpy as np

from tests.support.draws import Draws
from tests.support.onnx_draws.draws import Model, model, operator


@operator("Gather")
def gather(d: Draws) -> Model:
    x = d.drawn(*d.shape(1, 4))
    axis = d.axis(x.ndim)
    n = x.shape[axis]
    index = d.numbers(d.of("int32", "int64"), *d.shape(0, 2), low=-n, high=n - 1)
    return model("Gather", x, index, **({"axis": axis} if axis % x.ndim else d.maybe(axis=axis)))


@operator("GatherElements")
def gather_elements(d: Draws) -> Model:
    x = d.normal(*d.shape(1, 3))
    axis = d.axis(x.ndim)
    n = x.shape[axis]
    shape = list(x.shape)
    shape[axis] = d.whole(1, 5)
    index = d.numbers(d.of("int32", "int64"), *shape, low=-n, high=n - 1)
    return model("GatherElements", x, index, **({"axis": axis} if axis % x.ndim else d.maybe(axis=axis)))


@operator("GatherND")
def gather_nd(d: Draws) -> Model:
    x = d.normal(*d.shape(2, 4))
    batch = d.whole(0, 1)
    depth = d.whole(1, x.ndim - batch)
    rows = (*x.shape[:batch], *d.shape(0, 2))
    index = [d.numbers("int64", *rows, low=-n, high=n - 1) for n in x.shape[batch : batch + depth]]
    return model("GatherND", x, np.stack(index, -1), **({"batch_dims": batch} if batch else d.maybe(batch_dims=0)))


@operator("ScatterElements")
def scatter_elements(d: Draws) -> Model:
    x = d.normal(*d.shape(1, 3))
    axis = d.axis(x.ndim)
    n = x.shape[axis]
    way = d.of("none", "add", "mul", "min", "max")
    shape = [d.whole(1, m) for m in x.shape]
    index = np.apply_along_axis(d.rng.permutation, axis, np.broadcast_to(order_of(axis, x.shape), x.shape).copy())
    index = index[tuple(slice(m) for m in shape)] - d.of(0, n)
    more = {"axis": axis} if axis % x.ndim else d.maybe(axis=axis)
    more |= {"reduction": way} if way != "none" else d.maybe(reduction=way)
    return model("ScatterElements", x, index, d.normal(*shape), opset=18, **more)


def order_of(axis: int, shape: tuple[int, ...]) -> np.ndarray:
    """0, 1, 2 along an axis."""
    return np.arange(shape[axis]).reshape([-1 if i == axis % len(shape) else 1 for i in range(len(shape))])


@operator("ScatterND")
def scatter_nd(d: Draws) -> Model:
    x = d.normal(*d.shape(1, 3))
    depth = d.whole(1, x.ndim)
    way = d.of("none", "add", "mul", "min", "max")
    places = list(np.ndindex(x.shape[:depth]))
    some = d.rng.permutation(len(places))[: d.whole(1, 4)]
    index = np.array([places[i] for i in some]) - np.array(x.shape[:depth]) * d.of(0, 1)
    values = d.normal(len(some), *x.shape[depth:])
    return model("ScatterND", x, index, values, opset=18, **({"reduction": way} if way != "none" else {}))


@operator("OneHot")
def one_hot(d: Draws) -> Model:
    index = d.numbers("int64", *d.shape(1, 3), low=-6, high=6)
    depth, ends = np.int64(d.whole(1, 5)), d.of(d.normal(2), np.array([5, -3]))
    return model("OneHot", index, depth, ends, constant=(1, 2), **d.maybe(axis=d.axis(index.ndim + 1)))


@operator("TopK")
def top(d: Draws) -> Model:
    x = d.normal(*d.shape(1, 3, 6))
    axis = d.axis(x.ndim)
    k = np.array([d.whole(1, x.shape[axis])])
    more = {"axis": axis} if axis not in (-1, x.ndim - 1) else d.maybe(axis=axis)
    if d.of(True, False):
        return model("TopK", x, k, opset=11, constant=(1,), results=2, **more, **d.maybe(largest=0))
    return model("TopK", x, k, opset=10, constant=(1,), results=2, **more)


@operator("Compress")
def compress(d: Draws) -> Model:
    x = d.drawn(*d.shape(1, 3))
    axis = d.axis(x.ndim)
    way = d.of({}, {"axis": axis})
    n = x.shape[axis] if way else x.size
    return model("Compress", x, d.rng.random(d.whole(1, n)) < 0.6, constant=(1,), **way)


@operator("CumSum")
def running(d: Draws) -> Model:
    x = d.normal(*d.shape(1, 3))
    return model("CumSum", x, np.array(d.axis(x.ndim)), constant=(1,), **d.maybe(exclusive=1, reverse=1))
