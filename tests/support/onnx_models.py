"""Small ONNX models, by hand."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from cgraph.formats.onnx import load, serialised
from tests.support.tolerance import assert_near

FLOAT, INT32, INT64 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64
DOMAINS = {"com.microsoft": 1, "ai.onnx.ml": 3}


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


def written_result(output, inputs, *values):
    """What onnxruntime computes of a graph that this library wrote."""
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(serialised(output, inputs), providers=["CPUExecutionProvider"])
    return session.run(None, {x.name: v for x, v in zip(inputs, values, strict=True)})[0]


def written_nodes(output, inputs):
    """The nodes that are written of a graph, by kind; the last, Identity, names its result."""
    nodes = onnx.load_from_string(serialised(output, inputs)).graph.node
    return {x.op_type: {a.name: helper.get_attribute_value(a) for a in x.attribute} for x in nodes[:-1]}


def results_of(kind, operands, constant=(), *, by="runtime", results=1, opset=21, domain="", **attributes):
    """What one node computes here and elsewhere: two lists of arrays.

    Parameters
        operands: arrays, None for an absent one
        constant: indices of operands that are initialisers; the others are inputs
        by: who computes the other list: onnxruntime, the reference evaluator of onnx, or nobody
    """
    names = ["" if x is None else f"x{i}" for i, x in enumerate(operands)]
    arrays = {f"x{i}": np.asarray(x) for i, x in enumerate(operands) if x is not None}
    feeds = {name: x for name, x in arrays.items() if int(name[1:]) not in constant}
    outputs = [f"y{i}" for i in range(results)]
    node = helper.make_node(kind, names, outputs, domain=domain, **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in feeds.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(x, name) for name, x in arrays.items() if name not in feeds],
    )
    opsets = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, DOMAINS[domain])] if domain else [])]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    got = list(load(model.SerializeToString()).compile(engine="reference")(**feeds))
    if by == "nobody":
        return got, []
    if by == "reference":
        return got, ReferenceEvaluator(model).run(None, feeds)
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return got, session.run(None, feeds)


def assert_equal_results(kind, operands, constant=(), *, near="float32 products", **options):
    """AssertionError unless both sides give results of one dtype, one shape and near elements."""
    got, want = results_of(kind, operands, constant, **options)
    assert len(got) == len(want)
    for x, y in zip(got, want):
        assert (x.dtype, x.shape) == (np.asarray(y).dtype, np.shape(y))
        if x.dtype.kind == "f":
            assert_near(x, y, near)
        else:
            np.testing.assert_array_equal(x, y)
    return got
