"""Feature operators of ai.onnx.ml beside onnxruntime: offsets, norms, lost numbers, widths, codes, labels."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

from cgraph.errors import FormatError, InputError
from cgraph.formats.onnx.operators.features import default_of, encode_labels
from cgraph.ops.leaf import Const
from tests.support.onnx_context import context, value_of
from tests.support.onnx_models import assert_equal_results, results_of

pytest.importorskip("onnxruntime")
ML = {"domain": "ai.onnx.ml"}
X = np.array([[1, -2, 3], [0, 0, 0], [-4, 0.5, 2]], "f4")
tensor = numpy_helper.from_array


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "i4"])
def test_columns_are_moved_then_scaled(dtype):
    for offset, scale in (([1.0, 2.0, 3.0], [2.0, 0.5, 4.0]), ([1.0], [3.0])):
        assert_equal_results("Scaler", [X.astype(dtype)], offset=offset, scale=scale, **ML)


@pytest.mark.parametrize("norm", ["L1", "L2"])
def test_rows_are_divided_by_their_norm(norm):
    assert_equal_results("Normalizer", [X[[0, 2]]], norm=norm, **ML)
    got = results_of("Normalizer", [X], by="nobody", norm=norm, **ML)[0][0]
    assert not got[1].any()


def test_the_largest_size_divides_unless_told():
    got = results_of("Normalizer", [X], by="nobody", **ML)[0][0]
    np.testing.assert_array_equal(got[[0, 2]], X[[0, 2]] / np.array([[3], [4]], "f4"))
    with pytest.raises(FormatError, match="norm 'L3' is not supported. Use MAX, L1 or L2"):
        results_of("Normalizer", [X], by="nobody", norm="L3", **ML)


def test_numbers_above_a_threshold_are_one():
    assert_equal_results("Binarizer", [X], threshold=0.5, **ML)
    assert_equal_results("Binarizer", [X], **ML)


def test_lost_numbers_are_replaced():
    lost = X.copy()
    lost[0, 1] = lost[2, 2] = np.nan
    assert_equal_results(
        "Imputer", [lost], imputed_value_floats=[7.0, 8.0, 9.0], replaced_value_float=float("nan"), **ML
    )
    assert_equal_results("Imputer", [X], imputed_value_floats=[7.0], replaced_value_float=0.0, **ML)
    whole = X.astype("i8")
    assert_equal_results("Imputer", [whole], imputed_value_int64s=[7, 8, 9], replaced_value_int64=-2, **ML)
    assert_equal_results("Imputer", [whole], imputed_value_int64s=[7], **ML)


@pytest.mark.parametrize("widths", [[3, 2], [2, 2], [1, 1]])
def test_columns_are_joined_and_cut(widths):
    assert_equal_results("FeatureVectorizer", [X, X[:, :2] * 10], inputdimensions=widths, **ML)


def test_columns_that_are_missing_are_zero():
    got = results_of("FeatureVectorizer", [X, X[:, :1]], by="nobody", inputdimensions=[5, 2], **ML)[0][0]
    zeros = np.zeros((3, 1), "f4")
    np.testing.assert_array_equal(got, np.concatenate([X, zeros, zeros, X[:, :1], zeros], 1))


def test_columns_are_chosen_and_a_vector_gives_a_row():
    assert_equal_results("ArrayFeatureExtractor", [X, np.array([[2, 0]])], **ML)
    assert_equal_results("ArrayFeatureExtractor", [X[0], np.array([1])], **ML)


def test_categories_have_a_code():
    x = np.array([[3, 1], [9, 2]])
    assert_equal_results("OneHotEncoder", [x], cats_int64s=[1, 2, 3], zeros=1, **ML)
    assert_equal_results("OneHotEncoder", [x.astype("f4")], cats_int64s=[1, 2, 3], **ML)


@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_an_unknown_category_is_refused_by_a_run_where_the_file_says_so(dtype):
    x = np.array([[3, 1], [1, 2]], dtype)
    assert_equal_results("OneHotEncoder", [x], cats_int64s=[1, 2, 3], zeros=0, **ML)
    with pytest.raises(InputError, match="in OneHotEncoder .* none of the 3 categories.*set zeros=1"):
        results_of("OneHotEncoder", [x + 1], by="nobody", cats_int64s=[1, 2, 3], zeros=0, **ML)


def test_an_unknown_string_is_refused_by_a_run_where_the_file_says_so():
    x = np.array(["red", "blue"], object)
    assert_equal_results("OneHotEncoder", [x], cats_strings=["blue", "red"], zeros=0, **ML)
    with pytest.raises(InputError, match="none of the 1 categories"):
        results_of("OneHotEncoder", [x], by="nobody", cats_strings=["red"], zeros=0, **ML)


@pytest.mark.parametrize(
    "options",
    [
        {"keys_int64s": [3, 1, 2], "values_int64s": [30, 10, 20], "default_int64": -7},
        {"keys_int64s": [3, 1, 2], "values_int64s": [30, 10, 20]},
        {"keys_int64s": [3, 1, 2], "values_floats": [0.5, 1.5, 2.5], "default_float": 9.5},
        {"keys_int64s": [3, 1, 2], "values_floats": [0.5, 1.5, 2.5]},
    ],
    ids=str,
)
def test_labels_of_whole_numbers(options):
    assert_equal_results("LabelEncoder", [np.array([[1, 2, 3], [0, 4, 3]])], **options, **ML)


def test_labels_of_floats_and_of_what_is_no_number():
    x = np.array([1.5, np.nan, 2.5, -9], "f4")
    options = {"keys_floats": [2.5, float("nan"), 1.5], "values_int64s": [1, 2, 3], "default_int64": 0}
    got = results_of("LabelEncoder", [x], by="nobody", **options, **ML)[0][0]
    assert got.tolist() == [3, 2, 1, 0]
    got = results_of("LabelEncoder", [x], by="nobody", keys_floats=[1.5], values_floats=[4.0], **ML)[0][0]
    np.testing.assert_array_equal(got, np.array([4, 0, 0, 0], "f4"))


def test_the_first_of_equal_keys_counts_and_tensors_are_read():
    options = {"keys_int64s": [5, 5, 1], "values_int64s": [1, 2, 3]}
    got = results_of("LabelEncoder", [np.array([5, 1, 7])], by="nobody", **options, **ML)[0][0]
    assert got.tolist() == [1, 3, -1]
    keys, values, default = tensor(np.array([1, 2])), tensor(np.array([0.5, 1.5])), tensor(np.array([9.0]))
    options = {"keys_tensor": keys, "values_tensor": values, "default_tensor": default}
    got = results_of("LabelEncoder", [np.array([2, 3])], by="nobody", **options, **ML)[0][0]
    assert got.tolist() == [1.5, 9]


def test_a_table_has_keys_and_a_default_is_the_first_number_of_its_tensor():
    c = context(Const(np.array([3, 5, 3])))
    with pytest.raises(FormatError, match="0 keys have 0 values: give one for each"):
        encode_labels(c, np.zeros(0, "i8"), np.zeros(0, "i8"), 0)
    got = encode_labels(c, np.array([3]), np.array([7]), -1)
    assert value_of(got, {}).tolist() == [7, -1, 7]
    many = numpy_helper.from_array(np.array([[4, 5], [6, 7]]), "t")
    assert default_of(context(attributes=[helper.make_attribute("default_tensor", many)]), False) == 4
    floats = [helper.make_attribute("values_floats", [1.0])]
    assert default_of(context(attributes=floats), False) == 0 and default_of(context(), False) == -1


def test_tables_that_do_not_fit_are_refused():
    x = np.array([5])
    with pytest.raises(FormatError, match="2 keys have 1 values: give one for each"):
        results_of("LabelEncoder", [x], by="nobody", keys_int64s=[1, 2], values_int64s=[3], **ML)
    with pytest.raises(FormatError, match="operand 0 holds no strings, but attributes do"):
        results_of("LabelEncoder", [x], by="nobody", keys_strings=["a"], values_int64s=[3], **ML)


def test_what_a_scaler_or_an_imputer_does_not_say_is_the_standards_default():
    got = results_of("Scaler", [X], by="nobody", offset=[1.0, 2.0, 3.0], **ML)[0][0]
    np.testing.assert_array_equal(got, X - np.array([1, 2, 3], "f4"))
    got = results_of("Scaler", [X], by="nobody", scale=[2.0], **ML)[0][0]
    np.testing.assert_array_equal(got, X * 2)
    lost = X.copy()
    lost[0, 1] = np.nan
    assert_equal_results("Imputer", [lost], imputed_value_floats=[7.0, 8.0, 9.0], **ML)
    assert_equal_results("Imputer", [X.astype("i8")], imputed_value_int64s=[7, 8, 9], **ML)


@pytest.mark.parametrize("source", ["strings", "tensor"])
@pytest.mark.parametrize("default", ["none", "string", "tensor"])
def test_labels_that_are_strings_have_a_default_that_is_one(source, default):
    keys, values = np.array([4, 9]), np.array(["one", "two"], object)
    options = {"keys_int64s": [4, 9], "values_strings": ["one", "two"]}
    if source == "tensor":
        options = {"keys_tensor": tensor(keys), "values_tensor": tensor(values)}
    options |= {"none": {}, "string": {"default_string": "none"}, "tensor": {"default_tensor": tensor(values[1:])}}[
        default
    ]
    got = results_of("LabelEncoder", [np.array([9, 5, 4])], by="nobody", **options, **ML)[0][0]
    assert got.tolist() == ["two", {"none": "_Unused", "string": "none", "tensor": "two"}[default], "one"]


@pytest.mark.parametrize("source", ["strings", "tensor"])
@pytest.mark.parametrize("values", ["int64s", "floats"])
def test_strings_have_labels_that_are_numbers(source, values):
    words = np.array(["one", "two"], object)
    options = {"keys_strings": ["one", "two"]} if source == "strings" else {"keys_tensor": tensor(words)}
    options |= {"values_int64s": [7, 8]} if values == "int64s" else {"values_floats": [0.5, 1.5]}
    x = np.array([["two", "one"], ["six", "two"]], object)
    want = [[8, 7], [-1, 8]] if values == "int64s" else [[1.5, 0.5], [0, 1.5]]
    assert results_of("LabelEncoder", [x], by="nobody", **options, **ML)[0][0].tolist() == want
    name = "default_int64" if values == "int64s" else "default_float"
    got = results_of("LabelEncoder", [x], by="nobody", **options, **{name: 3 if values == "int64s" else 3.0}, **ML)[0][
        0
    ]
    assert got[1, 0] == 3
