"""Small ONNX models, by hand."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT32, INT64 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64


def model_of(nodes, inputs=(), constants=None, outputs=("y",), opset=21, **more):
    """A serialised model; inputs are names, dtypes and shapes."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(*x) for x in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(x), name) for name, x in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("d", 1)]
    return helper.make_model(graph, opset_imports=opsets, **more).SerializeToString()


def one(kind, inputs, constants=None, opset=21, **attributes):
    """A model of one node on inputs and constants, in this order."""
    names = [name for name, *_ in inputs] + list(constants or {})
    return model_of([helper.make_node(kind, names, ["y"], **attributes)], inputs, constants, opset=opset)
