"""Streams of random numbers with the methods of NumPy's `Generator`, usable inside functions that `cg.jit` traces.

A stream is a key (see `cgraph.ops.random`) and advances with each draw. The numbers are not those of NumPy's bit
generators; equal seeds give equal numbers on every engine, inside and outside of `jit`, up to rounding of the normal
distribution.
"""

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from cgraph.dtypes.convert import code_of
from cgraph.errors import ArgumentError, GraphError
from cgraph.ir.spec import dtype_of, shape_of
from cgraph.ir.tracing import TRACE
from cgraph.kernels import philox
from cgraph.numpy.creation import array
from cgraph.ops import random as ops
from cgraph.ops.take import take

MOST = 2**53
"""Width of the widest range of integers."""


def default_rng(seed: int) -> "RandomStream":
    """Return a stream that starts at a seed in ``0 .. 2**64 - 1``.

    Pass it to a function of `cg.jit` as an argument, and it advances there, or create it inside the function, and each
    call draws the same numbers.

        rng = cg.numpy.random.default_rng(7)
        rng.standard_normal((2, 3))
    """
    key = ops.random_key(seed)
    return RandomStream(key if TRACE.get() is None else array(key))


class RandomStream:
    """A stream of random numbers. Mutable: each draw advances its key.

    Fields
        key: uint32 ``[2]``, an array or, while a function is traced, a traced array
    """

    __slots__ = ("__weakref__", "key")

    def __init__(self, key: Any) -> None:
        self.key = key

    def __repr__(self) -> str:
        return f"<RandomStream {self.key}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError, with the way out for methods of NumPy's `Generator`."""
            is_numpys = hasattr(np.random.Generator, name)
            remedy = "draw with numpy.random.default_rng outside of the function" if is_numpys else "see dir(stream)"
            raise AttributeError(f"a random stream has no attribute {name!r}; {remedy}")

    def draw(self, traced: Callable[..., Any], values: Callable[..., np.ndarray], shape: Any, dtype: Any) -> Any:
        """Advance the key, and return numbers drawn with the part that is split off."""
        shape, dtype = shape_of(() if shape is None else shape), ops.random_float(dtype_of(dtype))
        if not isinstance(self.key, np.ndarray):
            self.key, now = ops.split_key(self.key)
            return traced(now, shape, dtype=dtype)
        if TRACE.get() is not None:
            raise GraphError(
                "a random stream from outside is used in a traced function, where it would draw the same numbers in "
                "each call. Pass the stream as an argument, or create it inside with default_rng"
            )
        self.key, drawn = philox.bits(self.key, 4, 4).reshape(2, 2)
        array = values(drawn, prod(shape), code_of(dtype)).reshape(shape)
        return array if shape else array[()]

    def random(self, size: Any = None, dtype: Any = "float64") -> Any:
        """Return uniform floats in [0, 1)."""
        return self.draw(ops.random_uniform, philox.uniform, size, dtype)

    def standard_normal(self, size: Any = None, dtype: Any = "float64") -> Any:
        """Return floats of the normal distribution with mean 0 and deviation 1."""
        return self.draw(ops.random_normal, philox.normal, size, dtype)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Return floats of the normal distribution with mean `loc` and deviation `scale`, which broadcast."""
        return self.standard_normal(common_shape(size, loc, scale)) * scale + loc

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Return uniform floats in [low, high), which broadcast."""
        return self.random(common_shape(size, low, high)) * (high - low) + low

    def integers(
        self, low: int, high: int | None = None, size: Any = None, dtype: Any = "int64", endpoint: bool = False
    ) -> Any:
        """Return uniform integers in [low, high), or in [0, low) without `high`; `endpoint` includes the last one."""
        low, high = (0, low) if high is None else (low, high)
        width = int(high) - int(low) + bool(endpoint)
        if not 0 < width <= MOST:
            raise ArgumentError(f"integers from {low} to {high} are {width} numbers; pass a range of 1 to 2**53")
        return np.floor(self.random(size) * width).astype(dtype) + dtype_of(dtype).type(low)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        """Return floats of the exponential distribution with mean `scale`."""
        return -np.log1p(-self.random(common_shape(size, scale))) * scale

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Any:
        """Return floats whose logarithms have the normal distribution of this mean and deviation."""
        return np.exp(self.normal(mean, sigma, size))

    def choice(self, a: Any, size: Any = None, replace: bool = True) -> Any:
        """Return elements of `a` along its first axis, or integers below it; each once with ``replace=False``."""
        n = int(a) if np.ndim(a) == 0 else len(a)
        count = prod(shape_of(() if size is None else size))
        if not replace and count > n:
            raise ArgumentError(f"{count} of {n} elements; pass replace=True, or a size of at most {n}")
        if replace:
            order = self.integers(n, size=size)
        else:
            order = self.permutation(n)[:count].reshape(shape_of(() if size is None else size))
        if np.ndim(a) == 0:
            return order
        return a[order] if isinstance(order, np.ndarray | np.integer) else take(a, order, 0)

    def permutation(self, x: Any) -> Any:
        """Return the integers below `x`, or the rows of an array, in random order."""
        n = int(x) if np.ndim(x) == 0 else len(x)
        order = np.argsort(self.random(n))
        if np.ndim(x) == 0:
            return order
        return x[order] if isinstance(order, np.ndarray) else take(x, order, 0)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Return NumPy's function of this name, which draws from NumPy's global generator.

        AttributeError while a function is traced, where each call would get the same numbers, and for other names.
        """
        if name.startswith("__"):  # names that Python looks up in any module
            raise AttributeError(f"{__name__} has no attribute {name!r}")
        if TRACE.get() is None and hasattr(np.random, name):
            return getattr(np.random, name)
        method = f".{name}" if hasattr(RandomStream, name) else ""
        other = f", or numpy.random.{name} outside of cg.jit" if hasattr(np.random, name) else ""
        raise AttributeError(f"{__name__} has no attribute {name!r}; use default_rng(seed){method}{other}")


def common_shape(size: Any, *parameters: Any) -> Any:
    """Return `size`, or the shape of the parameters broadcast together if it is None."""
    return np.broadcast_shapes(*map(np.shape, parameters)) if size is None else size
