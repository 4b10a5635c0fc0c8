"""Hooks: functions that lower layers call and upper layers provide.

No import runs up. Where a lower layer needs an upper one (a node's picture in a notebook, NumPy's functions on nodes),
it calls a hook of this file. `cgraph/__init__.py`, above all layers, names the function for each hook. Its module is
imported at the first call, so an unused hook costs nothing.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


class Hook:
    """A function provided by an upper layer. Mutable: `fill` sets its place, the first call imports it."""

    def __init__(self) -> None:
        self._place = ""
        self._function: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function of the upper layer."""
        function = self._function
        if function is None:
            module, _, name = self._place.partition(":")
            function = self._function = getattr(import_module(module), name)
        return function(*args, **kwargs)


# NumPy's functions and an ndarray's methods on nodes
numpy_attribute, numpy_names, numpy_ufunc, numpy_function = Hook(), Hook(), Hook(), Hook()
# notebooks, reports, traces
node_html, function_html, function_svg, report, write_trace = Hook(), Hook(), Hook(), Hook(), Hook()
# public functions while a Python function is traced
traced_call = Hook()
# files
read_safetensors, write_safetensors = Hook(), Hook()
save_functions, reduced_function, export_function, export_sized = Hook(), Hook(), Hook(), Hook()
compile_onnx, load_model = Hook(), Hook()


def fill(places: Mapping[Hook, str]) -> None:
    """Set the place of each hook's function, as ``package.module:function``. Nothing is imported."""
    for slot, place in places.items():
        slot._place = place
