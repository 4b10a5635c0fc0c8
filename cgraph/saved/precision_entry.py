"""The precision of a saved function's layers: its entry in the manifest."""

from typing import Any

from cgraph.planning.mixed_precision import BF16, FLOAT32, LayerPrecision, MixedPrecision
from cgraph.saved.manifest import get, is_size, items, malformed


def precision_of(entry: Any) -> MixedPrecision:
    """Return the content of an entry that `MixedPrecision.facts` returned. FormatError for any other."""
    tolerance, errors = entry.get("tolerance") if type(entry) is dict else None, get(entry, "errors", list)
    if not is_optional_number(tolerance):
        raise malformed("the tolerance")
    layers = tuple(layer_of(x) for x in get(entry, "layers", list))
    pairs = tuple((name, error) for name, error in (items(x, 2) for x in errors))
    if not all(type(name) is str and type(error) is float for name, error in pairs):
        raise malformed("the errors of outputs")
    return MixedPrecision(layers, tolerance, pairs, get(entry, "reason", str))


def layer_of(entry: Any) -> LayerPrecision:
    name, computed, count, reason, error = items(entry, len(LayerPrecision._fields))
    if type(name) is not str or type(reason) is not str or computed not in (BF16, FLOAT32):
        raise malformed("the precision of a layer")
    if not is_size(count) or not is_optional_number(error):
        raise malformed("the numbers of a layer")
    return LayerPrecision(name, computed, count, reason, error)


def is_optional_number(x: Any) -> bool:
    return x is None or type(x) in (int, float)
