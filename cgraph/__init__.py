"""cgraph: array expressions become a graph, a plan of every byte, and compiled kernels.

Modules are loaded when a name in them is first used, so that a process that runs a saved function loads little. Type
checkers read `__init__.pyi`, which is generated.
"""

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from cgraph import slots
from cgraph.collector import rare_collections
from cgraph.tracebacks import short_tracebacks

NAMES = {
    "cgraph.autodiff": ("gradient", "hessian_vector_product", "jvp"),
    "cgraph.errors": (
        "ArenaError",
        "ArgumentError",
        "BudgetError",
        "CgraphError",
        "DTypeError",
        "FormatError",
        "GraphError",
        "InputError",
        "MemberError",
        "MemoryWarning",
        "NoGradientError",
        "NoKernelError",
        "NoMeaningError",
        "OptionError",
        "PlanError",
        "PositionError",
        "ShapeError",
        "UnassignedError",
        "WeightsError",
    ),
    "cgraph.engine.export": ("ExportEngine",),
    "cgraph.function": ("Function", "compile"),
    "cgraph.ir.graph": ("OPS", "Node"),
    "cgraph.memory.problem": ("Plan", "Problem", "ProblemOperand", "UsageInterval"),
    "cgraph.ops.leaf": ("Const", "Var"),
    "cgraph.ops.pullback": ("pullback",),
    "cgraph.planning.mixed_precision": ("LayerPrecision", "MixedPrecision", "Tolerance"),
    "cgraph.record": ("Record",),
    "cgraph.running.runner": ("Runner",),
    "cgraph.sizes": ("SizedFunction", "compile_sizes"),
    "cgraph.saved.function": ("SavedFunction",),
    "cgraph.saved.read": ("load",),
    "cgraph.transforms.differentiate": ("grad", "value_and_grad"),
    "cgraph.transforms.jacobian": ("hessian", "jacobian"),
    "cgraph.transforms.compile_function": ("jit",),
    "cgraph.transforms.vectorise": ("vmap",),
    "cgraph.standalone.export": ("export", "export_targets"),
    "cgraph.standalone.several": ("export_sizes",),
    "cgraph.version": ("__version__",),
    "cgraph.storage.weight_file": ("StreamedWeights", "check_weights"),
}
APART = (
    "cgraph.errors",
    "cgraph.memory.problem",
    "cgraph.planning.mixed_precision",
    "cgraph.record",
    "cgraph.running.runner",
    "cgraph.saved.function",
    "cgraph.saved.read",
    "cgraph.version",
    "cgraph.storage.weight_file",
)  # modules that need no graph
PICTURES = (
    "frame_svg",
    "function_dot",
    "function_svg",
    "graph_dot",
    "graph_from_text",
    "page_html",
    "report",
    "text",
    "timed_report",
)
PACKAGES = ("array_api", "dist", "formats", "numpy", "quantiser", "view")
slots.fill(
    {
        slots.numpy_attribute: "cgraph.numpy.dispatch:attribute",
        slots.numpy_names: "cgraph.numpy.dispatch:names",
        slots.numpy_ufunc: "cgraph.numpy.dispatch:call_ufunc",
        slots.numpy_function: "cgraph.numpy.dispatch:call_function",
        slots.traced_call: "cgraph.transforms.trace:traced_call",
        slots.node_html: "cgraph.view.notebook:node_html",
        slots.function_html: "cgraph.view.notebook:notebook_html",
        slots.function_svg: "cgraph.view.notebook:notebook_svg",
        slots.report: "cgraph.view.report:report",
        slots.write_trace: "cgraph.view.trace:write_trace",
        slots.read_safetensors: "cgraph.formats.safetensors:read_safetensors",
        slots.write_safetensors: "cgraph.formats.safetensors:write_safetensors",
        slots.save_functions: "cgraph.saved.write:save",
        slots.reduced_function: "cgraph.saved.write:reduced",
        slots.export_function: "cgraph.standalone.export:export_function",
        slots.export_sized: "cgraph.standalone.several:export_sized_function",
        slots.compile_onnx: "cgraph.formats.compile_onnx:compile_onnx",
        slots.load_model: "cgraph.formats.load:load_model",
    }
)
sys.excepthook = short_tracebacks(sys.excepthook)
_MODULE_OF = {name: module for module, names in NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Return a public name: a class or function of NAMES, an op's function, a subpackage."""
    if name in _MODULE_OF:
        if _MODULE_OF[name] not in APART:
            _functions()
        value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
        return value
    if name in PACKAGES:
        return import_module(f"cgraph.{name}")
    if name == "nn":
        return import_module("nn")
    if name == "__all__":
        return [*dict.fromkeys([*_MODULE_OF, *PICTURES, *_functions()])]  # the view adds its pictures to the functions
    if name in PICTURES:
        import_module("cgraph.view")
    elif name.startswith("__"):  # names that Python looks up in any module
        raise AttributeError(f"cgraph has no attribute {name!r}")
    if name not in _functions():
        raise import_module("cgraph.numpy.missing").missing_name(name, __dir__())
    return _functions()[name]


def _functions() -> Mapping[str, Any]:
    """Return the functions of all ops by name, which nodes look up for their operators and methods."""
    if "cgraph.function" not in sys.modules:
        with rare_collections():
            import_module("cgraph.function")
    return import_module("cgraph.ir.graph").OPS


def __dir__() -> list[str]:
    return [*__getattr__("__all__"), *PACKAGES, "nn"]
