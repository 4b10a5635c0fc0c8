"""The table is complete: every function that NumPy lets others override is in it or refused, with NumPy's arguments."""

import inspect
import types
from importlib import import_module

import numpy as np
import numpy.polynomial  # whose functions are listed once it is loaded
import pytest
from numpy.testing import overrides

import cgraph as cg
import cgraph.numpy
from cgraph.numpy.dispatch import name_of
from cgraph.numpy.plain import MEMORY
from cgraph.numpy.refused import REFUSED
from cgraph.numpy.table import FUNCTIONS

ELSEWHERE = ("numpy.char", "numpy.strings", "numpy.lib.recfunctions", "numpy.rec", "numpy.polynomial")
NOT_NUMERIC = {"_ones_like", "clip"}
SAID_OTHERWISE = {"array", "meshgrid", "fromfunction", "apply_along_axis", "einsum", "einsum_path", "pad"}


def functions() -> list:
    """Those that are found under their own names, which leaves out the twins that stand behind ``like=``."""
    found = [f for f in overrides.get_overridable_numpy_array_functions() if not f.__module__.startswith(ELSEWHERE)]
    named = [f for f in found if getattr(import_module(f.__module__), f.__name__, None) is f]
    return sorted(named, key=name_of)


def ufuncs() -> list:
    """Those of numbers: they have a loop for a float, a whole number or a bool."""
    found = overrides.get_overridable_numpy_ufuncs()
    of_numbers = [u for u in found if any(t.split("->")[0].strip("?bhilqBHILQefdg") == "" for t in u.types)]
    return sorted((u for u in of_numbers if u.__name__ not in NOT_NUMERIC), key=name_of)


@pytest.mark.parametrize("function", [*functions(), *ufuncs()], ids=name_of)
def test_every_function_is_in_one_of_the_two_tables(function):
    assert (function in FUNCTIONS) != (function in REFUSED)


def test_names_that_mean_two_functions_are_two():
    for one, other in ((np.trace, np.linalg.trace), (np.diagonal, np.linalg.diagonal), (np.cross, np.linalg.cross)):
        assert FUNCTIONS[one] is not FUNCTIONS[other]
    assert FUNCTIONS[np.emath.sqrt] is not FUNCTIONS[np.sqrt]


@pytest.mark.parametrize("function", [f for f in functions() if f in FUNCTIONS], ids=name_of)
def test_parameters_are_numpys_by_name_and_order(function):
    ours = list(inspect.signature(FUNCTIONS[function]).parameters.values())
    theirs = inspect.signature(function).parameters
    optional = [p.name for p in ours if p.default is not inspect.Parameter.empty]
    assert set(optional) <= set(theirs) or function.__name__ in SAID_OTHERWISE, set(optional) - set(theirs)
    order = [n for n in theirs if n in optional]
    assert [n for n in optional if n in theirs] == order
    assert required(ours) == required(theirs.values()) or function.__name__ in SAID_OTHERWISE


def required(parameters) -> int:
    """How many arguments must be given."""
    return sum(p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)


@pytest.mark.parametrize("function", [f for f in functions() if f in FUNCTIONS], ids=name_of)
def test_defaults_are_numpys(function):
    theirs = inspect.signature(function).parameters
    for name, ours in inspect.signature(FUNCTIONS[function]).parameters.items():
        if name not in theirs or ours.default is inspect.Parameter.empty or name in MEMORY:
            continue
        default = theirs[name].default
        nothing = default is np._NoValue or (default is None and ours.default in (float, None))
        assert nothing or ours.default == default or default is inspect.Parameter.empty, name


def test_the_module_has_every_function_of_the_table_by_numpys_name():
    modules = {"numpy": cg.numpy, "numpy.linalg": cg.numpy.linalg, "numpy.fft": cg.numpy.fft}
    modules["numpy.lib.scimath"] = cg.numpy.emath
    for function, ours in FUNCTIONS.items():
        module = modules.get(getattr(function, "__module__", "numpy") or "numpy", cg.numpy)
        name = function.__name__
        assert name == "sliding_window_view" or getattr(module, name).__wrapped__ is ours


def test_the_module_has_no_function_that_numpy_has_not():
    for name in [n for n in dir(cgraph.numpy) if not n.startswith("_")]:
        found = getattr(cgraph.numpy, name)
        assert isinstance(found, types.ModuleType) or hasattr(np, name) or name == "sliding_window_view", name
