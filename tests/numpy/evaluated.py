"""A call made with NumPy's arrays and with nodes, and the values of what came out."""

import math
import operator
import warnings
from typing import Any

import numpy as np

import cgraph as cg
from tests.numpy.calls import operands


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
