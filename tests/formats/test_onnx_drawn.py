"""Operators with random shapes, axes, attributes and opsets mean what ONNX Runtime computes, and so written again."""

import zlib

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.onnx import load, serialised
from tests.support.draws import Draws
from tests.support.onnx_draws import DRAWN
from tests.support.tolerance import assert_close

peer = pytest.importorskip("onnxruntime")
SEEDS = range(10)
WRITTEN = 3  # of these seeds


def peers_results(raw: bytes, given: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = peer.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    options.graph_optimization_level = peer.GraphOptimizationLevel.ORT_DISABLE_ALL
    return peer.InferenceSession(raw, options).run(None, given)


@pytest.mark.parametrize("kind", DRAWN)
def test_an_operator_with_random_attributes(kind):
    for seed in SEEDS:
        model = DRAWN[kind](Draws(zlib.crc32(kind.encode()), seed))
        wanted, found = peers_results(model.raw, dict(model.given)), load(model.raw)
        got = found.compile(engine="reference")(*(model.given[x.name] for x in found.inputs))
        for mine, theirs in zip(got, wanted, strict=True):
            assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype), seed
            assert_close(mine, theirs, 4)


def test_most_of_them_are_written_with_the_same_meaning():
    """Not: what the writer has no operator for, which it says."""
    written = 0
    for kind in DRAWN:
        for seed in range(WRITTEN):
            model = DRAWN[kind](Draws(zlib.crc32(kind.encode()), seed))
            found = load(model.raw)
            values = [model.given[x.name] for x in found.inputs]
            try:
                raw = serialised(list(found.outputs), found.inputs)
            except FormatError:
                continue
            wanted = found.compile(engine="reference")(*values)
            try:
                got = peers_results(raw, {x.name: v for x, v in zip(found.inputs, values)})
            except peer.capi.onnxruntime_pybind11_state.NotImplemented:  # whole numbers, mostly
                continue
            written += 1
            for mine, theirs in zip(got, wanted, strict=True):
                assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype), (kind, seed)
                assert_close(mine, theirs, 40)
    assert written > WRITTEN * len(DRAWN) // 2
