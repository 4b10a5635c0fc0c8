"""What an ONNX node is drawn from.

A function draws what it needs and returns a `Model`. Only what ONNX Runtime computes is drawn.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
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
    kind: str, *operands: Any, opset: int = 21, results: int = 1, constant: tuple[int, ...] = (), **attributes: Any
) -> Model:
    """A node whose operands are inputs but for those listed in `constant`; None leaves an operand out."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(operands)]
    given = {names[i]: np.asarray(x) for i, x in enumerate(operands) if x is not None and i not in constant}
    held = {names[i]: np.asarray(operands[i]) for i in constant if operands[i] is not None}
    ends = [f"y{i}" for i in range(results)]
    graph = helper.make_graph(
        [helper.make_node(kind.rpartition(".")[2], names, ends, domain=kind.rpartition(".")[0], **attributes)], "one",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in given.items()],
        [helper.make_empty_tensor_value_info(end) for end in ends],
        [numpy_helper.from_array(x, n) for n, x in held.items()],
    )  # fmt: skip
    made = helper.make_model(
        graph, opset_imports=[helper.make_opsetid(*x) for x in (("", opset), ("com.microsoft", 1))], ir_version=10
    )
    return Model(made.SerializeToString(), given)
