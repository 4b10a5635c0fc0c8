"""The Python array API standard, 2024.12: lazy arrays that are graphs until a value is needed.

    from cgraph import array_api as xp
    x = xp.linspace(0, 1, 1_000_000)
    y = xp.sum(xp.sin(x) * 2 + 1)     # three nodes, nothing has run
    print(float(y))                   # one kernel, one pass

Functions whose result's shape depends on values run at once, in NumPy.
"""

import sys

from numpy import e, inf, nan, newaxis, pi

from cgraph.array_api import fft, linalg
from cgraph.array_api.array import Array
from cgraph.array_api.creation import (
    arange,
    asarray,
    astype,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from cgraph.array_api.functions import FUNCTIONS
from cgraph.array_api.indexing import argsort, broadcast_arrays, clip, nonzero, sort, where
from cgraph.array_api.inspection import DTYPES, can_cast, finfo, iinfo, isdtype, result_type
from cgraph.array_api.inspection import Information as __array_namespace_info__
from cgraph.array_api.operators import give_all

__array_api_version__ = "2024.12"
globals().update(FUNCTIONS)
globals().update(DTYPES)
give_all(sys.modules[__name__])
__all__ = [
    *FUNCTIONS, *DTYPES, "Array", "__array_api_version__", "__array_namespace_info__", "arange", "argsort", "asarray",
    "astype", "broadcast_arrays", "can_cast", "clip", "e", "empty", "empty_like", "eye", "fft", "finfo", "from_dlpack",
    "full", "full_like", "iinfo", "inf", "isdtype", "linalg", "linspace", "meshgrid", "nan", "newaxis", "nonzero",
    "ones", "ones_like", "pi", "result_type", "sort", "where", "zeros", "zeros_like",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
