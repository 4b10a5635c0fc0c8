"""One node of onnxruntime's own operators, here and in onnxruntime."""

from pathlib import Path

import numpy as np
from onnx import helper, numpy_helper

from cgraph.formats.onnx import load
from tests.support.tolerance import assert_near

MICROSOFT = "com.microsoft"


def model_of(kind, operands, outputs=1, constants=(), domain=MICROSOFT, opset=17, **attributes) -> bytes:
    """A serialised model of one node. Operands are arrays or None; `constants` are the places of those in the file."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(operands)]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(kind, names, results, domain=domain, **attributes)
    kept = [numpy_helper.from_array(operands[i], f"x{i}") for i in constants]
    inputs = [
        helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for i, x in enumerate(operands)
        if x is not None and i not in constants
    ]
    graph = helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info(y) for y in results], kept)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def assert_same(
    path: Path, kind, operands, outputs=1, constants=(), tolerance="float32 products and a residual", **attributes
) -> list:
    """AssertionError unless a node has onnxruntime's results; return ours."""
    import onnxruntime

    path.write_bytes(model_of(kind, operands, outputs, constants, **attributes))
    feed = {f"x{i}": x for i, x in enumerate(operands) if x is not None and i not in constants}
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    wanted = session.run(None, feed)
    results = load(path).compile()(**feed)
    assert len(results) == len(wanted)
    for got, want in zip(results, wanted):
        assert (np.shape(got), np.asarray(got).dtype) == (want.shape, want.dtype)
        assert_near(got, want, tolerance)
    return list(results)
