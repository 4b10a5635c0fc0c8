"""TfIdfVectorizer: counts of n-grams beside the reference, skips, weights, columns that nothing counts into."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from tests.support.onnx_models import INT64, assert_equal_results, one

X = np.array([[1, 2, 3, 1, 2, 5], [2, 2, 2, 3, 3, 1]], "i8")
POOL = {
    "pool_int64s": [2, 3, 5, 1, 2, 2, 3, 2, 2, 1, 2, 3],
    "ngram_counts": [0, 3, 9],
    "ngram_indexes": [0, 2, 1, 4, 3, 5, 6],
    "max_skip_count": 0,
    "min_gram_length": 1,
    "max_gram_length": 3,
    "mode": "TF",
}


@pytest.mark.parametrize("skips", [0, 1, 2, 5])
@pytest.mark.parametrize("lengths", [(1, 1), (2, 2), (1, 3), (2, 3)])
@pytest.mark.parametrize("x", [X, X[0], X.astype("i4")], ids=["rows", "row", "int32"])
def test_runs_are_counted_with_gaps(skips, lengths, x):
    options = POOL | {"max_skip_count": skips, "min_gram_length": lengths[0], "max_gram_length": lengths[1]}
    pytest.importorskip("onnxruntime")
    assert_equal_results("TfIdfVectorizer", [x], **options)


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("weighted", [False, True])
def test_modes_and_weights(mode, weighted):
    pytest.importorskip("onnxruntime")
    options = POOL | {"mode": mode} | ({"weights": [0.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]} if weighted else {})
    assert_equal_results("TfIdfVectorizer", [X], **options)


def test_a_count_by_hand():
    options = POOL | {"pool_int64s": [2, 1, 2], "ngram_counts": [0, 1], "ngram_indexes": [3, 0], "max_gram_length": 2}
    (got,) = load(one("TfIdfVectorizer", [("x", INT64, (2, 6))], **options)).compile(engine="reference")(X)
    assert got.tolist() == [[2, 0, 0, 2], [0, 0, 0, 3]] and got.dtype == np.float32


def test_n_grams_without_a_column_are_refused():
    with pytest.raises(FormatError, match=r"the pool has 7 n-grams, ngram_indexes 2: each needs its column"):
        load(one("TfIdfVectorizer", [("x", INT64, (2, 6))], **POOL | {"ngram_indexes": [0, 1]}))


def test_columns_without_an_n_gram_stay_zero():
    """More columns are listed than there are n-grams, and columns between them are left out."""
    options = {"pool_int64s": [2, 1, 2], "ngram_counts": [0, 1], "ngram_indexes": [3, 0, 5, 7], "max_gram_length": 2}
    (got,) = load(one("TfIdfVectorizer", [("x", INT64, (2, 6))], **POOL | options)).compile(engine="reference")(X)
    assert got.tolist() == [[2, 0, 0, 2, 0, 0, 0, 0], [0, 0, 0, 3, 0, 0, 0, 0]]
    weights = {"mode": "TFIDF", "weights": [0.5, 2.0, 3.0, 4.0]}
    (got,) = load(one("TfIdfVectorizer", [("x", INT64, (2, 6))], **POOL | options | weights)).compile()(X)
    assert got.tolist() == [[4, 0, 0, 1, 0, 0, 0, 0], [0, 0, 0, 1.5, 0, 0, 0, 0]]


@pytest.mark.parametrize(
    "options",
    [{"ngram_counts": [0, 13]}, {"ngram_counts": [-1, 3]}, {"ngram_counts": [3, 0]}, {"ngram_indexes": [0, -1]}],
    ids=str,
)
def test_tables_that_do_not_fit_are_refused(options):
    with pytest.raises(FormatError, match="do not fit the 12 values of the pool"):
        load(one("TfIdfVectorizer", [("x", INT64, (2, 6))], **POOL | options))


def test_words_are_refused_and_columns_are_charged():
    with pytest.raises(FormatError, match="TfIdfVectorizer.*operand 0 holds no strings"):
        load(one("TfIdfVectorizer", [("x", INT64, (2, 6))], pool_strings=["a"], mode="TF"))
    with pytest.raises(FormatError, match="TfIdfVectorizer.*would take"):
        load(one("TfIdfVectorizer", [("x", INT64, (2, 6))], **POOL | {"ngram_indexes": [10**9]}))
