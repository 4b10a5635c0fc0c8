"""Rows of dask arrays as samples: those of the array in memory, read block by block from files."""

import pickle
import re

import numpy as np
import pytest

pytest.importorskip("distributed", reason="distributed is not installed")

import dask.array as da

import nn
from cgraph import InputError
from nn.losses import quadratic
from tests.support.stores import STORES, numpy_stack

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(50, 3)).astype("f4"), RNG.normal(size=(50, 2)).astype("f4")


@pytest.mark.parametrize("numbers", [[3], [49, 0, 7, 6], [5, 5, 5], [], range(50), [20, 3, 20, 41, 3]], ids=str)
@pytest.mark.parametrize("store", STORES)
def test_rows_are_those_of_the_array_in_the_order_of_the_numbers(tmp_path, numbers, store):
    samples = nn.DaskSamples(STORES[store](X, tmp_path / "x"))
    rows = samples.read(np.array(numbers, int))
    assert len(samples) == 50 and rows.dtype == X.dtype
    np.testing.assert_array_equal(rows, X[np.array(numbers, int)])


def test_a_batch_reads_only_the_blocks_of_its_rows_and_each_once():
    blocks = []

    def read(block, block_info=None):
        blocks.append(block_info[0]["chunk-location"][0])
        return block

    array = da.from_array(X, chunks=(10, 3)).map_blocks(read, dtype=X.dtype, meta=X[:0])
    rows = nn.DaskSamples(array).read(np.array([41, 12, 45, 12, 48]))
    np.testing.assert_array_equal(rows, X[[41, 12, 45, 12, 48]])
    assert sorted(blocks) == [1, 4]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("order", ["shuffled", "given", "sampled"])
def test_training_has_the_bits_of_arrays_in_memory(tmp_path, order, store):
    def train(x, y):
        model = nn.initialise(nn.Linear(3, 2), 1)
        data = nn.Loader((x, y), 8, order, seed=4, prefetch=1)
        history = nn.train(model, data, quadratic, epochs=2.5, engine="reference", progress=False)
        return [history.loss.tolist(), model.weight.value.tolist()]

    sources = (nn.DaskSamples(STORES[store](array, tmp_path / name)) for name, array in (("x", X), ("y", Y)))
    assert train(*sources) == train(X, Y)


def test_what_is_sent_is_the_graph_and_not_the_data(tmp_path):
    large = np.zeros((1000, 1000), "f4")
    samples = nn.DaskSamples(numpy_stack(large, tmp_path / "large", 100))
    raw = pickle.dumps(samples)
    assert len(raw) < large.nbytes / 100
    np.testing.assert_array_equal(pickle.loads(raw).read(np.array([999])), large[:1])


@pytest.mark.parametrize("array", [X, 3, None, da.from_array(np.float32(1))], ids=lambda x: type(x).__name__)
def test_what_is_not_a_dask_array_of_samples_is_refused(array):
    with pytest.raises(InputError, match=re.escape("Pass a dask array whose first axis counts the samples")):
        nn.DaskSamples(array)


def test_an_array_of_unknown_length_is_refused():
    with pytest.raises(InputError, match=re.escape("Call its compute_chunk_sizes() first")):
        nn.DaskSamples(da.from_array(X)[da.from_array(X[:, 0]) > 0])


def test_only_the_first_axis_must_be_known():
    samples = nn.DaskSamples(da.from_array(X)[:, da.from_array(X[0]) > X[0].min()])
    assert np.isnan(samples.array.shape[1]) and len(samples) == 50
    np.testing.assert_array_equal(samples.read(np.array([4, 2])), X[[4, 2]][:, X[0] > X[0].min()])
