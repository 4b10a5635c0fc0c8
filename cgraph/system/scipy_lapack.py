"""SciPy's LAPACK: the addresses of its C functions, which kernels call by name.

SciPy exports them as capsules of ``scipy.linalg.cython_lapack``. That module is loaded without the package around it,
which takes a fifth of a second. Each argument is an address; integers have 32 bits.
"""

import ctypes
import sys
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any

import numpy as np

MODULE = "scipy.linalg.cython_lapack"


@cache
def capsules() -> dict[str, Any]:
    """Return the capsules by LAPACK's names; empty where SciPy does not have them."""
    try:
        module = sys.modules.get(MODULE) or load_module()
    except ImportError:
        return {}
    return getattr(module, "__pyx_capi__", {})


def load_module() -> Any:
    """Import the module alone. ImportError if SciPy lacks it."""
    package = find_spec("scipy.linalg")  # imports SciPy, which on Windows makes its libraries known
    spec = PathFinder.find_spec(MODULE, package.submodule_search_locations) if package else None
    if spec is None or spec.loader is None:
        raise ImportError(f"{MODULE} is not installed")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules.pop(MODULE, None)  # an import of the package finds it, and sets its attribute of this name
    return module


@cache
def has_lapack() -> bool:
    """Return True if kernels can call LAPACK."""
    return "dgesv" in capsules()


@cache
def address_of(name: str) -> int:
    """Return the address of LAPACK's function `name`. KeyError if SciPy does not have it."""
    capsule = capsules()[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))


@cache
def work_sizes(name: str, *args: int | str | np.dtype | None) -> tuple[int, ...]:
    """Return the number of elements of each work array that LAPACK needs.

    Parameters
        args: all arguments but the last one: integers (-1 as the size of a work array), letters, None for an array, the
            dtype of a work array
    """
    arrays = [*map(memory_of, args), np.zeros(1, np.int32)]
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(address_of(name))
    function(*(x.ctypes.data for x in arrays))
    if arrays[-1][0]:
        raise ValueError(f"LAPACK's {name} refuses its argument {-arrays[-1][0]} of {args}")
    return tuple(int(x[0].real) for x, arg in zip(arrays, args) if isinstance(arg, np.dtype))


def memory_of(arg: int | str | np.dtype | None) -> np.ndarray:
    """Return the memory of one argument of `work_sizes`."""
    if isinstance(arg, str):
        return np.frombuffer(arg.encode(), np.uint8)
    if isinstance(arg, int):
        return np.array([arg], np.int32)
    return np.zeros(2, np.dtype("complex128") if arg is None else arg)
