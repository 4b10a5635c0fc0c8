"""Operators with random shapes, axes, attributes and opsets mean what ONNX Runtime computes."""

import zlib

import numpy as np
import pytest

from cgraph.formats.onnx import load
from tests.support.onnx_draws import DRAWN, Draws
from tests.support.tolerance import assert_close

SEEDS = range(10)


@pytest.mark.parametrize("kind", DRAWN)
def test_an_operator_with_random_attributes(kind):
    peer = pytest.importorskip("onnxruntime")
    options = peer.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    options.graph_optimization_level = peer.GraphOptimizationLevel.ORT_DISABLE_ALL
    for seed in SEEDS:
        model = DRAWN[kind](Draws(zlib.crc32(kind.encode()), seed))
        wanted = peer.InferenceSession(model.raw, options).run(None, dict(model.given))
        found = load(model.raw)
        got = found.compile(engine="reference")(*(model.given[x.name] for x in found.inputs))
        for mine, theirs in zip(got, wanted, strict=True):
            assert mine.dtype == theirs.dtype, seed
            np.testing.assert_array_equal(mine.shape, theirs.shape, str(seed))
            assert_close(mine, theirs, 4)
