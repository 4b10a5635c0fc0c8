"""Importers of feature operators of ai.onnx.ml: scaling, imputation, selection and encoding of columns."""

from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.vocabulary import CodedStrings
from cgraph.ir.graph import Node

LEAST = 1e-30  # divisor of rows of norm 0


@operator("ai.onnx.ml.Scaler")
def scaler(c: Context) -> Node:
    """Import Scaler: ``(x - offset) * scale`` in float32."""
    x = cg.astype(c[0], "float32")
    offset, scale = (
        np.asarray(c.numbers(name, default), np.float32) for name, default in (("offset", 0), ("scale", 1))
    )
    return (x - offset) * scale


@operator("ai.onnx.ml.Normalizer")
def normalizer(c: Context) -> Node:
    """Import Normalizer: rows divided by their MAX, L1 or L2 norm."""
    x, norm = cg.astype(c[0], "float32"), c.attribute("norm", "MAX")
    if norm not in ("MAX", "L1", "L2"):
        raise FormatError(f"norm {norm!r:.40} is not supported. Use MAX, L1 or L2")
    size = {
        "MAX": lambda: cg.max(cg.abs(x), -1, keepdims=True),
        "L1": lambda: cg.sum(cg.abs(x), -1, keepdims=True),
        "L2": lambda: cg.sqrt(cg.sum(x * x, -1, keepdims=True)),
    }[norm]()
    return x / cg.maximum(size, np.float32(LEAST))


@operator("ai.onnx.ml.Binarizer")
def binarizer(c: Context) -> Node:
    """Import Binarizer: 1 for numbers above the threshold, else 0."""
    return cg.astype(c[0] > np.asarray(c.attribute("threshold", 0.0), c[0].dtype), c[0].dtype)


@operator("ai.onnx.ml.Imputer")
def imputer(c: Context) -> Node:
    """Import Imputer: replace one number, or NaN, by a value for all columns or one per column."""
    x = c[0]
    kind = "float" if x.dtype.kind == "f" else "int64"
    values = c.required_numbers(f"imputed_value_{kind}s").astype(x.dtype)
    replaced = c.attribute(f"replaced_value_{kind}", 0)
    lost = cg.isnan(x) if replaced != replaced else cg.equal(x, np.asarray(replaced, x.dtype))
    return cg.where(lost, values, x)


@operator("ai.onnx.ml.FeatureVectorizer")
def feature_vectorizer(c: Context) -> Node:
    """Import FeatureVectorizer: concatenate columns, each operand cut or zero-padded to its declared width."""
    parts = []
    for x, width in zip(c.nodes, c.required("inputdimensions"), strict=True):
        x = cg.astype(cg.reshape(x, (x.shape[0], -1)), "float32")
        c.spend(nbytes=4 * x.shape[0] * width)
        parts.append(x[:, :width] if width <= x.shape[1] else cg.pad(x, ((0, 0), (0, width - x.shape[1]))))
    return cg.concat(parts, 1)


@operator("ai.onnx.ml.ArrayFeatureExtractor")
def array_feature_extractor(c: Context) -> Node:
    """Import ArrayFeatureExtractor: gather along the last axis; a vector gives a row."""
    x, places = c[0], cg.reshape(c[1], (-1,))
    features = cg.take(x, places, -1)
    return cg.reshape(features, (1, -1)) if x.ndim == 1 else features


@operator("ai.onnx.ml.OneHotEncoder")
def one_hot_encoder(c: Context) -> Node:
    """Import OneHotEncoder: a one-hot code along a new last axis.

    An unknown category has zeros, or with ``zeros=0`` makes the run raise InputError.
    """
    names = c.attribute("cats_strings")
    categories = c.vocabulary.codes(names) if names else c.required_numbers("cats_int64s").astype(np.int64)
    whole = cg.astype(c.text(0)[0] if names else c[0], "int64")
    code = cg.equal(cg.expand_dims(whole, -1), categories)
    if not c.attribute("zeros", 1):
        c.limits.check(
            cg.all(cg.any(code, -1)),
            f"{c.node_text}: an element of its input is none of the {len(categories)} categories, which zeros=0 "
            "refuses. Pass categories of the file, or set zeros=1 in the file",
        )
    return cg.astype(code, "float32")


@operator("ai.onnx.ml.LabelEncoder")
def label_encoder(c: Context) -> Node | CodedStrings:
    """Import LabelEncoder: the value of a key, or a default; the first of equal keys counts."""
    if c.attribute("classes_strings"):
        return encode_classes(c)
    (keys, reads_text), (values, is_text) = table_of(c, "keys"), table_of(c, "values")
    encoded = encode_labels(c.text(0) if reads_text else c, keys, values, default_of(c, is_text))
    return CodedStrings(encoded) if is_text else encoded


def encode_classes(c: Context) -> Node | CodedStrings:
    """Import LabelEncoder of version 1: the number of a class, or the class of a number."""
    names = c.vocabulary.codes(c.attribute("classes_strings"))
    numbers = np.arange(len(names))
    if isinstance(c.value(0), CodedStrings):
        return encode_labels(c.text(0), names, numbers, c.attribute("default_int64", -1))
    default = c.vocabulary.codes([c.attribute("default_string", "_Unused")])[0]
    return CodedStrings(encode_labels(c, numbers, names, default))


def encode_labels(c: Context, keys: np.ndarray, values: np.ndarray, default: Any) -> Node:
    """Return the value of each element's key, or the default."""
    if len(keys) != len(values) or not len(keys):
        raise FormatError(f"{len(keys)} keys have {len(values)} values: give one for each")
    x = c[0]
    order = np.argsort(keys, kind="stable")  # NaN is last
    keys, values = keys[order], values[order]
    keys, first = np.unique(keys, return_index=True)
    place = cg.minimum(cg.searchsorted(keys.astype(x.dtype), x), len(keys) - 1)
    nearest_keys = cg.take(keys.astype(x.dtype), place, 0)
    same = cg.equal(nearest_keys, x)
    if keys.dtype.kind == "f" and np.isnan(keys[-1]):
        same = cg.logical_or(same, cg.logical_and(cg.isnan(x), cg.isnan(nearest_keys)))
    return cg.where(same, cg.take(values[first], place, 0), np.asarray(default, values.dtype))


def table_of(c: Context, name: str) -> tuple[np.ndarray, bool]:
    """Return keys or values, from the attribute that exists, and whether they are codes of strings."""
    tensor: Any = c.attribute(f"{name}_tensor")
    strings = c.attribute(f"{name}_strings") if tensor is None else None
    if strings:
        return c.vocabulary.codes(strings), True
    if tensor is not None:
        flat = np.asarray(tensor).reshape(-1)
        return (c.vocabulary.codes(flat), True) if flat.dtype == object else (flat, False)
    floats = c.numbers(f"{name}_floats", np.zeros(0))
    numbers = floats.astype(np.float32) if floats.size else c.required_numbers(f"{name}_int64s").astype(np.int64)
    return numbers, False


def default_of(c: Context, is_text: bool) -> Any:
    """Return the value for keys that are not listed; the code of a string if values are strings."""
    tensor = c.attribute("default_tensor")
    if tensor is not None:
        value = np.asarray(tensor).reshape(-1)[0]
        return c.vocabulary.codes([value])[0] if is_text else value
    if is_text:
        return c.vocabulary.codes([c.attribute("default_string", "_Unused")])[0]
    if c.numbers("values_floats", np.zeros(0)).size:
        return c.attribute("default_float", -0.0)
    return c.attribute("default_int64", -1)
