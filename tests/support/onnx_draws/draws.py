"""What an ONNX node is drawn from.

A function draws what it needs and returns a `Model`. Only what ONNX Runtime computes is drawn.
"""

import zlib
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from cgraph.record import Record
from tests.support.draws import Draws

DRAWN: dict[str, Callable[[Draws], "Model"]] = {}


class Model(Record):
    """A model of one node.

    Fields
        raw: the file
        given: a value for each input
    """

    raw: bytes
    given: Mapping[str, np.ndarray]


def operator(*kinds: str) -> Callable[[Any], Any]:
    """List a function under operators; where there are several, it is given which."""

    def listed(function: Any) -> Any:
        for kind in kinds:
            DRAWN[kind] = function if len(kinds) == 1 else lambda d, kind=kind: function(d, kind)
        return function

    return listed


def model(
    kind: str,
    *operands: Any,
    opset: int = 21,
    results: int = 1,
    constant: tuple[int, ...] = (),
    more: Mapping[str, Any] | None = None,
    **attributes: Any,
) -> Model:
    """A node whose operands are inputs but for those listed in `constant`; None leaves an operand out.

    Parameters
        more: attributes whose names are those of parameters
    """
    attributes |= more or {}
    names = ["" if x is None else f"x{i}" for i, x in enumerate(operands)]
    given = {names[i]: np.asarray(x) for i, x in enumerate(operands) if x is not None and i not in constant}
    held = {names[i]: np.asarray(operands[i]) for i in constant if operands[i] is not None}
    ends = [f"y{i}" for i in range(results)]
    graph = helper.make_graph(
        [node_of(kind, names, ends, attributes)], "one",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in given.items()],
        [helper.make_empty_tensor_value_info(end) for end in ends],
        [numpy_helper.from_array(x, n) for n, x in held.items()],
    )  # fmt: skip
    made = helper.make_model(
        graph, opset_imports=[helper.make_opsetid(*x) for x in (("", opset), ("com.microsoft", 1))], ir_version=10
    )
    return Model(made.SerializeToString(), given)


def node_of(kind: str, names: list[str], ends: list[str], attributes: Mapping[str, Any]) -> Any:
    node = helper.make_node(kind.rpartition(".")[2], names, ends, domain=kind.rpartition(".")[0])
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    return node


def drawn_model(kind: str, seed: int) -> Model:
    return DRAWN[kind](Draws(zlib.crc32(kind.encode()), seed))


def features_of(drawn: Model) -> set[tuple[Any, ...]]:
    """What sets a model apart from others of its kind: opset, operands and attributes, without their exact lists."""
    proto = onnx.load_from_string(drawn.raw)
    (node,) = proto.graph.node
    held = {t.name: ("constant", t.data_type, len(t.dims)) for t in proto.graph.initializer}
    given = {name: ("input", x.dtype.str, x.ndim) for name, x in drawn.given.items()}
    found: set[tuple[Any, ...]] = {("opset", proto.opset_import[0].version), ("results", len(node.output))}
    found.add(("operands", len(node.input)))
    for i, name in enumerate(node.input):
        kept = held.get(name) or given.get(name) or ("absent",)
        found |= {(i, *kept), (i, *kept[:1])}
    for a in node.attribute:
        value = helper.get_attribute_value(a)
        is_list = isinstance(value, list)
        found |= {(a.name,), (a.name, len(value), len(set(value)) > 1, min(value) < 0) if is_list else (a.name, value)}
    return found


def telling_seeds(kind: str, most: int) -> list[int]:
    """The seeds below `most` whose models have two features together that no earlier one has."""
    seen: set[frozenset[Any]] = set()
    seeds = []
    for seed in range(most):
        pairs = {frozenset(pair) for pair in combinations(features_of(drawn_model(kind, seed)), 2)}
        if not pairs <= seen:
            seeds.append(seed)
            seen |= pairs
    return seeds
