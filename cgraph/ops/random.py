"""Random numbers from a key: equal keys give equal numbers on every engine and any number of threads.

A key is two uint32. It has no hidden state: split it into keys for separate uses, and let an update edge carry one of
them to the next run.
"""

from functools import partial
from typing import Any

import numpy as np

from cgraph.dtypes.convert import code_of
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.spec import Spec, dtype_of, shape_of
from cgraph.ir.work import Work
from cgraph.kernels import philox
from cgraph.kernels.random.calls import random_calls
from cgraph.kernels.target import Target
from cgraph.ops.compare import where
from cgraph.ops.leaf import as_node


class RandomOp(Op):
    """Base of ops whose values depend on a key and the position of the element only.

    Operands
        key: uint32 ``[2]``
    """

    shape: tuple[int, ...]

    @property
    def result_dtype(self) -> np.dtype:
        raise NotImplementedError

    def infer(self, key: Spec) -> Spec:
        if key.dtype != np.uint32 or key.shape != (2,):
            raise ShapeError(f"key is {key}, but must be uint32[2]; create one with random_key or split_key")
        return Spec(self.shape, self.result_dtype)

    def work(self, target: Target, key: Spec) -> Work:
        return Work(partial(random_calls, target, self.name))

    def grad(self, node, g):
        return (None,)


class Bits(RandomOp):
    """Uniform random uint32 or uint64."""

    dtype: np.dtype

    @property
    def result_dtype(self) -> np.dtype:
        if self.dtype not in (np.uint32, np.uint64):
            raise DTypeError(f"dtype={self.dtype} is not supported for random bits; use uint32 or uint64")
        return self.dtype

    def meaning(self, key):
        return philox.bits(key, int(np.prod(self.shape)), self.dtype.itemsize).reshape(self.shape)


def random_float(dtype: np.dtype) -> np.dtype:
    """Return a dtype of random floats. DTypeError for another one."""
    if dtype not in (np.float32, np.float64):
        raise DTypeError(f"dtype={dtype} is not supported for random floats; use float32 or float64")
    return dtype


class Uniform(RandomOp):
    """Uniform floats in [0, 1): multiples of 2**-24 (float32) or 2**-53 (float64)."""

    dtype: np.dtype

    @property
    def result_dtype(self) -> np.dtype:
        return random_float(self.dtype)

    def meaning(self, key):
        return philox.uniform(key, int(np.prod(self.shape)), code_of(self.dtype)).reshape(self.shape)


class Normal(Uniform):
    """Floats of the standard normal distribution."""

    def meaning(self, key):
        return philox.normal(key, int(np.prod(self.shape)), code_of(self.dtype)).reshape(self.shape)


class Bernoulli(RandomOp):
    """True with a given probability."""

    probability: float

    @property
    def result_dtype(self) -> np.dtype:
        return np.dtype(bool)

    def infer(self, key: Spec) -> Spec:
        if not 0 <= self.probability <= 1:
            raise ShapeError(f"probability={self.probability} is outside [0, 1]; pass a number in that range")
        return super().infer(key)

    def meaning(self, key):
        return philox.bernoulli(key, int(np.prod(self.shape)), self.probability).reshape(self.shape)

    def work(self, target: Target, key: Spec) -> Work:
        return Work(lambda out, key: random_calls(target, self.name, out, key, self.probability))


@public
def random_key(seed: int) -> np.ndarray:
    """Return the key of a seed in ``0 .. 2**64 - 1``: an array uint32[2], for a Var or for direct use."""
    if not 0 <= seed < 2**64:
        raise ShapeError(f"seed={seed} is outside 0 .. 2**64 - 1; pass a seed in that range")
    return np.array([seed & 0xFFFFFFFF, seed >> 32], np.uint32)


@public
def split_key(key: Any, count: int = 2) -> list[Node]:
    """Return `count` keys derived from one; do not use that one for anything else."""
    bits = random_bits(key, (count, 2), "uint32")
    return [bits[i] for i in range(count)]


@public
def random_bits(key: Any, shape: Any = (), dtype: Any = "uint32") -> Node:
    """Return uniform random integers over all bits of uint32 or uint64."""
    return apply(Bits(shape_of(shape), dtype_of(dtype)), as_node(key))


@public
def random_uniform(key: Any, shape: Any = (), low: float = 0.0, high: float = 1.0, dtype: Any = "float32") -> Node:
    """Return uniform random floats in [low, high)."""
    unit = apply(Uniform(shape_of(shape), dtype_of(dtype)), as_node(key))
    return unit if (low, high) == (0.0, 1.0) else unit * (high - low) + low


@public
def random_normal(key: Any, shape: Any = (), mean: float = 0.0, std: float = 1.0, dtype: Any = "float32") -> Node:
    """Return random floats of the normal distribution."""
    unit = apply(Normal(shape_of(shape), dtype_of(dtype)), as_node(key))
    return unit if (mean, std) == (0.0, 1.0) else unit * std + mean


@public
def random_bernoulli(key: Any, shape: Any = (), probability: float = 0.5) -> Node:
    """Return True with a probability, which is rounded to a multiple of 2**-32."""
    return apply(Bernoulli(shape_of(shape), float(probability)), as_node(key))


@public
def dropout(x: Any, key: Any, rate: float = 0.5) -> Node:
    """Set each element of `x` to 0 with probability `rate` and divide the others by ``1 - rate``.

    Source: Srivastava et al. 2014.
    """
    if not 0 <= rate < 1:
        raise ShapeError(f"rate={rate} is outside [0, 1); pass a rate in that range")
    x = as_node(x)
    if rate == 0:
        return x
    return where(random_bernoulli(key, x.shape, 1 - rate), x * (1 / (1 - rate)), 0)
