"""Every op that the ONNX writer has an operator for, with all its options, is read back with the same meaning."""

import warnings
from collections.abc import Sequence

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.errors import FormatError
from cgraph.formats.onnx import load, serialised
from cgraph.formats.onnx.emit import EMITTERS
from cgraph.ir.graph import Node
from cgraph.ir.spec import Spec
from cgraph.ir.traverse import post_order
from cgraph.ops.physical.lanes import BOXES
from tests.ops.cases import CASES
from tests.ops.test_options import ROWS, given
from tests.support.tolerance import assert_close

HELD_AS_SINGLE = {"group_norm-rows", "lrn-even"}
"""Rows with numbers that ONNX keeps as attributes, which are float32."""


OTHER_SIZES = {'cg.resize(s2, (7, 8), coordinates="asymmetric", rounding="floor", scales=(0.6, 1.0))'}
"""Calls whose result is not as large as ONNX makes one of these scales."""


def is_written(outputs: Sequence[Node]) -> bool:
    """Whether the writer has an operator for each op; ONNX quantises no doubles, and aligns boxes in one image size."""
    nodes = post_order(outputs)
    return all(has_operator(x) and (x.op.name in EMITTERS or not x.operands) for x in nodes)


def has_operator(x: Node) -> bool:
    dtypes = {v.dtype for v in (x, *x.operands) if isinstance(v.spec, Spec)}
    if x.op.name in ("quantize", "dequantize") and np.dtype("float64") in dtypes:
        return False
    return all(d.kind != "c" for d in dtypes) and not (x.op.name == "roi_align" and len(x.operands) > BOXES + 1)


def assert_read_back(
    outputs: Sequence[Node], inputs: Sequence[Node], values: Sequence[np.ndarray], scale: float
) -> None:
    model = load(serialised(outputs, inputs))
    wanted = evaluate(outputs, dict(zip(inputs, values)))
    for got, want in zip(model.compile(engine="reference")(*values), wanted, strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        assert_close(got, want, scale)


@pytest.mark.parametrize("op", sorted({row.op for row in CASES}))
def test_rows_of_an_op_are_read_back(op):
    rows = [row for row in CASES if row.op == op]
    for row in rows + [row.in_float32() for row in rows]:
        values = [draw.array(np.random.default_rng(0)) for draw in row.draws]
        inputs = [cg.Var(x.shape, x.dtype, f"x{i}") for i, x in enumerate(values)]
        built = row.build(*inputs)
        outputs = [built] if isinstance(built, Node) else list(built)
        if not is_written(outputs):
            continue
        single = str(row) in HELD_AS_SINGLE and outputs[0].dtype == "float64"
        assert_read_back(outputs, inputs, values, 1e6 if single else 8)


def test_options_are_written():
    """The table has a call for each option of a function. Attributes of files are float32."""
    count = 0
    for call, _ in ROWS:
        node = given(call, is_lazy=True)
        if call in OTHER_SIZES:
            with pytest.raises(FormatError, match=r"\[9, 8\] times \[0.6, 1.0\] are not \[7, 8\]. Use resize without"):
                serialised([node], [])
        elif isinstance(node, Node) and is_written([node]):
            with warnings.catch_warnings(action="ignore"):
                assert_read_back([node], [], [], 1e5)
            count += 1
    assert count > 50
