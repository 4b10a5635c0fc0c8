"""ONNX's protobuf messages without the rest of the onnx package, whose import takes three times as long."""

import sys
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType

from cgraph.system.extras import missing_package

MODULE = "onnx.onnx_ml_pb2"


@cache
def messages() -> ModuleType:
    """Return the module with ModelProto and its parts; the onnx package uses the same one if it is imported later.

    Raises
        UnavailableError: the onnx package, or protobuf, is not installed
    """
    module = sys.modules.get(MODULE)
    if module and hasattr(module, "ModelProto"):  # else another thread is importing it
        return module
    try:
        return sys.modules.setdefault(MODULE, load_messages())
    except ImportError:
        raise missing_package("onnx", "ONNX files") from None


def load_messages() -> ModuleType:
    """Run only the module of messages. ImportError if it does not exist."""
    package = find_spec("onnx")
    spec = package and PathFinder.find_spec(MODULE, package.submodule_search_locations)
    if not spec or not spec.loader:
        raise ImportError(MODULE)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
