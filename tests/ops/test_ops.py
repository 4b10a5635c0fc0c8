"""The list of public functions of ops, by module."""

import subprocess
import sys

import cgraph as cg
from cgraph.ir.graph import OPS
from cgraph.ops import FUNCTIONS

SCRIPT = """
from importlib import import_module
import sys
from cgraph.ops import FUNCTIONS
from cgraph.ir.graph import OPS
entered = {}
class Entered(dict):
    def __setitem__(self, name, function):
        frame = sys._getframe(2)
        while frame.f_code.co_name != "<module>" or not frame.f_globals["__name__"].startswith("cgraph.ops."):
            frame = frame.f_back
        entered.setdefault(frame.f_globals["__name__"].removeprefix("cgraph.ops."), set()).add(name)
        super().__setitem__(name, function)
OPS._functions = Entered()
for name in FUNCTIONS:
    import_module(f"cgraph.ops.{name}")
assert entered == {name: set(line.split()) for name, line in FUNCTIONS.items()}, entered
"""


def test_the_list_of_ops_has_the_functions_of_all_modules():
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)


def test_each_op_is_listed_once():
    names = [name for line in FUNCTIONS.values() for name in line.split()]
    assert len(names) == len(set(names)) and set(names) <= set(OPS)
    assert all(callable(OPS[name]) and getattr(cg, name) is OPS[name] for name in names)
