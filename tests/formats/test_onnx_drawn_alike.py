"""Operators with random attributes mean the same beside all others in one model, and in double precision."""

import zlib
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from cgraph.formats.onnx import load
from tests.support.draws import Draws
from tests.support.onnx_draws import DRAWN
from tests.support.tolerance import assert_close

SEEDS = range(2)
FLOAT, DOUBLE = TensorProto.FLOAT, TensorProto.DOUBLE


def drawn(kind: str, seed: int) -> tuple[Any, dict[str, np.ndarray], list[np.ndarray]]:
    """A model, what it is given, and the results."""
    model = DRAWN[kind](Draws(zlib.crc32(kind.encode()), seed))
    return onnx.load_from_string(model.raw), dict(model.given), results(model.raw, model.given)


def results(raw: bytes, given: Any) -> list[np.ndarray]:
    model = load(raw)
    return model.compile(engine="reference")(*(given[x.name] for x in model.inputs))


def with_prefix(graph: Any, prefix: str) -> Any:
    """A copy of a graph with other names; absent operands stay absent."""
    copy = onnx.GraphProto()
    copy.CopyFrom(graph)
    for x in (*copy.input, *copy.output, *copy.initializer):
        x.name = prefix + x.name
    for node in copy.node:
        for names in (node.input, node.output):
            renamed = [prefix + name if name else "" for name in names]
            del names[:]
            names.extend(renamed)
    return copy


def test_all_operators_in_one_model_mean_what_each_does_alone():
    whole, given, wanted, opsets = onnx.GraphProto(name="all"), {}, [], None
    for kind in DRAWN:
        for seed in SEEDS:
            proto, values, found = drawn(kind, seed)
            if {(x.domain, x.version) for x in proto.opset_import} != {("", 21), ("com.microsoft", 1)}:
                continue
            part, opsets = with_prefix(proto.graph, f"{kind}{seed}"), proto.opset_import
            for name in ("node", "input", "output", "initializer"):
                getattr(whole, name).extend(getattr(part, name))
            given |= {f"{kind}{seed}{name}": x for name, x in values.items()}
            wanted += found
    assert len(whole.node) > len(DRAWN)
    raw = helper.make_model(whole, opset_imports=opsets, ir_version=10).SerializeToString()
    for output, got, want in zip(whole.output, results(raw, given), wanted, strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape), output.name
        np.testing.assert_array_equal(got, want, output.name)


def in_doubles(proto: Any) -> list[bool] | None:
    """Make operands doubles that may be; return which results are then, or None if no operand may be."""
    (node,) = proto.graph.node
    version = next(x.version for x in proto.opset_import if not x.domain)
    if node.domain:
        return None
    schema = onnx.defs.get_schema(node.op_type, version)
    wide = {x.type_param_str for x in schema.type_constraints if "tensor(double)" in x.allowed_type_strs}
    types = types_of(schema.inputs, node.input)
    names = {name for name, kind in zip(node.input, types) if kind in wide}
    changed = [x for x in proto.graph.input if x.name in names and x.type.tensor_type.elem_type == FLOAT]
    for x in changed:
        x.type.tensor_type.elem_type = DOUBLE
    for x in proto.graph.initializer:
        if x.name in names and x.data_type == FLOAT:
            x.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(x).astype("f8"), x.name))
    read = {kind for name, kind in zip(node.input, types) if name in {x.name for x in changed}}
    return [kind in read for kind in types_of(schema.outputs, node.output)] if changed else None


def types_of(parameters: Any, names: Any) -> list[str]:
    """The types of operands or results; of the last parameter there may be several."""
    return [parameters[min(i, len(parameters) - 1)].type_str for i in range(len(names))]


@pytest.mark.parametrize("kind", DRAWN)
def test_in_double_precision_results_are_the_same_and_doubles(kind):
    for seed in SEEDS:
        proto, given, wanted = drawn(kind, seed)
        doubles = in_doubles(proto)
        if doubles is None:
            continue
        codes = {x.name: x.type.tensor_type.elem_type for x in proto.graph.input}
        wide = {name: given[name].astype(helper.tensor_dtype_to_np_dtype(code)) for name, code in codes.items()}
        for is_double, got, want in zip(doubles, results(proto.SerializeToString(), wide), wanted, strict=True):
            assert got.dtype == (np.float64 if is_double else want.dtype), seed
            assert_close(got.astype(want.dtype), want, 8)
