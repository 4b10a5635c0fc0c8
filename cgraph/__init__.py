"""cgraph: array expressions become a graph, a plan of every byte, and compiled kernels that run it."""

from importlib import import_module
from typing import Any

import cgraph.ops  # noqa: F401 - fills OPS
from cgraph.autodiff import gradient, hessian_vector_product, jvp
from cgraph.errors import (
    ArenaError,
    BudgetError,
    CgraphError,
    DTypeError,
    FormatError,
    GraphError,
    InputError,
    MemoryWarning,
    NoGradientError,
    NoKernelError,
    PlanError,
    PositionError,
    ShapeError,
    UnassignedError,
)
from cgraph.function import Function, compile
from cgraph.ir.graph import OPS, Node
from cgraph.ops.leaf import Const, Var
from cgraph.ops.pullback import pullback
from cgraph.record import Record

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Every op's function, by name; file formats and pictures, loaded when they are first named."""
    if name in ("formats", "view"):
        return import_module(f"cgraph.{name}")
    if name in PICTURES:
        import_module("cgraph.view")
    if name not in OPS:
        raise AttributeError(f"cgraph has no attribute {name!r}")
    return OPS[name]


PICTURES = ("function_dot", "function_svg", "graph_dot", "page_html", "report", "timed_report")


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "ArenaError",
    "BudgetError",
    "CgraphError",
    "Const",
    "DTypeError",
    "FormatError",
    "Function",
    "GraphError",
    "InputError",
    "MemoryWarning",
    "NoGradientError",
    "NoKernelError",
    "Node",
    "PlanError",
    "PositionError",
    "Record",
    "ShapeError",
    "UnassignedError",
    "Var",
    "__version__",
    "compile",
    "gradient",
    "hessian_vector_product",
    "jvp",
    "pullback",
    *PICTURES,
    *OPS,
]
