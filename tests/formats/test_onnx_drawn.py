"""Operators with random shapes, axes, attributes and opsets mean what ONNX Runtime computes, and so written again."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.onnx import load, serialised
from tests.support.onnx_draws import DRAWN
from tests.support.onnx_draws.draws import drawn_model, telling_seeds
from tests.support.tolerance import assert_close

peer = pytest.importorskip("onnxruntime")
SEEDS = range(10)
DRAWS = 200  # of which those are tested that have two features together for the first time
WRITTEN = 3  # of the seeds
UNWRITTEN = {
    "BitShift": [0, 1, 2],
    "Det": [0, 1, 2],
    "Div": [0, 1],
    "Einsum": [2],
    "GatherND": [0, 1],
    "MaxUnpool": [0, 1, 2],
    "Mod": [1, 2],
    "NonMaxSuppression": [0, 1, 2],
    "NonZero": [0, 1, 2],
    "QLinearConv": [0, 2],
    "QLinearMatMul": [0],
    "ScatterElements": [0, 1, 2],
    "ScatterND": [0, 1, 2],
    "TensorScatter": [0, 1, 2],
    "TopK": [0, 1, 2],
    "Unique": [0, 1, 2],
    "com.microsoft.GroupQueryAttention": [0, 1, 2],
    "com.microsoft.Inverse": [0, 1, 2],
    "com.microsoft.MatMulNBits": [0, 1, 2],
}
"""Kinds that the writer has no operator for, and of which seeds; all others are written."""
PEER_LACKS = {
    "ConvInteger": [0, 1, 2],
}
"""Kinds that are written as something that the peer does not compute: products of integers."""


def peers_results(raw: bytes, given: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = peer.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    options.graph_optimization_level = peer.GraphOptimizationLevel.ORT_DISABLE_ALL
    return peer.InferenceSession(raw, options).run(None, given)


@pytest.mark.parametrize("kind", DRAWN)
def test_an_operator_with_each_two_of_its_options_together(kind):
    for seed in sorted({*SEEDS, *telling_seeds(kind, DRAWS)}):
        model = drawn_model(kind, seed)
        wanted, found = peers_results(model.raw, dict(model.given)), load(model.raw)
        got = found.compile(engine="reference")(*(model.given[x.name] for x in found.inputs))
        for mine, theirs in zip(got, wanted, strict=True):
            assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype), seed
            assert_close(mine, theirs, 4)


def test_all_others_are_written_with_the_same_meaning():
    """All but what the writer has no operator for, which it says."""
    unwritten: dict[str, list[int]] = {}
    lacking: dict[str, list[int]] = {}
    for kind in DRAWN:
        for seed in range(WRITTEN):
            model = drawn_model(kind, seed)
            found = load(model.raw)
            values = [model.given[x.name] for x in found.inputs]
            try:
                raw = serialised(list(found.outputs), found.inputs)
            except FormatError:
                unwritten.setdefault(kind, []).append(seed)
                continue
            wanted = found.compile(engine="reference")(*values)
            try:
                got = peers_results(raw, {x.name: v for x, v in zip(found.inputs, values)})
            except peer.capi.onnxruntime_pybind11_state.NotImplemented:
                lacking.setdefault(kind, []).append(seed)
                continue
            for mine, theirs in zip(got, wanted, strict=True):
                assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype), (kind, seed)
                assert_close(mine, theirs, 40)
    assert (unwritten, lacking) == (UNWRITTEN, PEER_LACKS)
