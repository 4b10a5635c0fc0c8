"""A call made with NumPy's arrays and with nodes, and the values of what came out."""

import math
import operator
import warnings
from collections.abc import Callable
from itertools import chain, permutations
from typing import Any

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import CgraphError
from tests.numpy.calls import operands
from tests.support.tolerance import assert_close

FEW_ULPS = 20  # times the tolerance of the dtype: both sides round, in other orders
FLOATS = ("float64", "float32")
KINDS = (*FLOATS, "int32", "uint8", "bool", "complex128")


def called(call: str, names: dict[str, Any]) -> list[Any]:
    """What a call gives, in one list however it is nested."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return flat(eval(call, {"np": np, "math": math, "operator": operator, **names}))


def flat(found: Any) -> list[Any]:
    return [x for part in found for x in flat(part)] if isinstance(found, tuple | list) else [found]


def nodes(dtype: str = "float64") -> dict[str, cg.Node]:
    """The operands as Vars that hold them, so that nothing is known of their values."""
    return {name: cg.Var(x.shape, x.dtype, name).assign(x) for name, x in operands(dtype).items()}


def values(found: list[Any], engine: str = "reference") -> list[Any]:
    """Nodes evaluated, in one Function; what is no node as it is."""
    made = [x for x in found if isinstance(x, cg.Node)]
    got = iter(cg.compile(made, engine=engine)() if made else ())
    return [next(got) if isinstance(x, cg.Node) else x for x in found]


def assert_same(got, want, dtype: str = "float64") -> None:
    """Shape, dtype and value, floats as near as the operands' dtype lets them be; float32 stands for float16."""
    got, want = np.asarray(got), np.asarray(want)
    want = want.astype("float32") if want.dtype == np.float16 else want
    assert got.dtype == want.dtype
    single = {"float64": "float32", "complex128": "complex64"} if dtype == "float32" else {}
    assert_close(*(x.astype(single.get(str(x.dtype), x.dtype)) for x in (got, want)), FEW_ULPS)


def assert_equal(got, want, dtype: str = "float64") -> None:
    """Shape, dtype, and every bit but those of NaNs: of functions that do not round."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    if want.dtype.kind == "f":
        signed = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got)[signed], np.signbit(want)[signed])


def compare_bits(call: str, **arrays: np.ndarray) -> None:
    """AssertionError unless nodes give exactly what NumPy gives, or refuse what it refuses."""
    compare_by(assert_equal, call, "float64", arrays)


def compare(call: str, dtype: str = "float64", **arrays: np.ndarray) -> None:
    """AssertionError unless nodes give what NumPy gives, or refuse what it refuses."""
    compare_by(assert_same, call, dtype, arrays)


def compare_by(check: Callable[..., None], call: str, dtype: str, arrays: dict[str, np.ndarray]) -> None:
    """Compare a call's values by a function of both sides and the dtype."""
    nodes = {name: cg.Var(x.shape, x.dtype, name).assign(x) for name, x in arrays.items()}
    try:
        wanted = called(call, arrays)
    except (ValueError, TypeError, IndexError, ZeroDivisionError):
        with pytest.raises((CgraphError, ValueError, TypeError, IndexError)):
            values(called(call, nodes))
        return
    got = values(called(call, nodes))
    assert len(got) == len(wanted), call
    for mine, theirs in zip(got, wanted):
        try:
            check(mine, theirs, dtype)
        except AssertionError as error:
            raise AssertionError(f"{call} of {arrays}: {error}") from None


def drawn(shape: tuple[int, ...], dtype: str = "float64", seed: int = 0) -> np.ndarray:
    """Positive numbers of a dtype, or complex ones."""
    rng = np.random.default_rng([seed, *shape])
    x = rng.normal(size=shape) * 3
    return (x + 1j * rng.normal(size=shape)).astype(dtype) if np.dtype(dtype).kind == "c" else np.abs(x).astype(dtype)


def orders(count: int) -> list[tuple[int, ...]]:
    """Every choice of axes in every order, and the same from the end."""
    some = list(chain.from_iterable(permutations(range(count), n) for n in range(1, count + 1)))
    return [*some, *(tuple(i - count for i in axes) for axes in some)]
