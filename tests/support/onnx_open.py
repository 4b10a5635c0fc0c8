"""ONNX models with lengths that are known only when run, compared with onnxruntime."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from cgraph.engine.cpu.engine import CpuEngine
from cgraph.formats.onnx import load
from cgraph.function import Function
from tests.support.tolerance import assert_near

KINDS = {"f4": TensorProto.FLOAT, "i8": TensorProto.INT64, "?": TensorProto.BOOL}
node = helper.make_node


def numbers(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def info(name: str, kind: str, shape: Sequence[int] | None) -> Any:
    return helper.make_tensor_value_info(name, KINDS[kind], shape)


def open_model(
    nodes: Sequence[Any], inputs: Mapping[str, tuple], constants: Mapping[str, Any] | None = None, outputs: str = "y"
) -> bytes:
    """A serialised model; inputs by name with kind and shape, outputs as names in one text."""
    graph = helper.make_graph(
        nodes,
        "g",
        [info(name, *kind) for name, kind in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs.split()],
        [numpy_helper.from_array(np.asarray(x), name) for name, x in (constants or {}).items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=10)
    return made.SerializeToString()


def agrees(raw: bytes, feeds: Sequence[Mapping[str, Any]], maximum: Mapping[str, int] | None = None) -> Function:
    """AssertionError unless every output is what onnxruntime gives, in shape, dtype and value.

    So is that of an engine that fills dead bytes with NaN, with the same bits: no result depends on what lies behind a
    length.
    """
    import onnxruntime

    model = load(raw, maximum=maximum)
    function, poisoned = model.compile(), model.compile(engine=CpuEngine(poison=True))
    session = onnxruntime.InferenceSession(raw, providers=["CPUExecutionProvider"])
    for given in feeds:
        feed = {name: np.asarray(x) for name, x in given.items()}
        results = function(**feed)
        for got, other in zip(results, poisoned(**feed), strict=True):
            assert got.shape == other.shape and got.tobytes() == other.tobytes()
        for got, want in zip(results, session.run(None, feed), strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            assert_near(got, want, "float32 products")
    return function
