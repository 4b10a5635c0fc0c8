"""Values of lengths that a run decides, for importers of ONNX that are called by hand."""

import numpy as np

from cgraph.engine.reference import evaluate
from cgraph.formats.allowance import Allowance
from cgraph.formats.constants import Evaluator
from cgraph.formats.onnx.context import Context
from cgraph.formats.onnx.dynamic.bounds import LengthBounds, Size
from cgraph.formats.onnx.dynamic.value import lengths_of, node_in, with_lengths
from cgraph.formats.onnx.tensors import array_of
from cgraph.formats.onnx.vocabulary import Vocabulary
from cgraph.ops.leaf import Var


def context(*operands, attributes=(), maximum=None, constants=None, **fields):
    """One node that is being imported; attributes are AttributeProtos."""
    allowance = Allowance(0)
    options = {
        "kind": "Kind",
        "name": "name",
        "read": [f"x{i}" for i in range(len(operands))],
        "written": ["y"],
        "attributes": {a.name: a for a in attributes},
        "opset": 21,
        "read_results": (True,),
        "evaluator": Evaluator(allowance, constants or {}),
        "limits": LengthBounds(maximum or {}, allowance),
        "build": lambda *_: [],
        "named": lambda name: None,
        "arrays": array_of,
        "listed": lambda proto: None,
        "vocabulary": Vocabulary(allowance),
        "few": {},
    }
    return Context(operands=tuple(operands), **(options | fields))


def length(c, name, most, least=0):
    """A length between two bounds, and its Var."""
    var = Var((), "int64", name)
    c.limits.at_most(var, most)
    return Size(var, least, most)


def ragged(x, lengths):
    """A value with axes of these lengths."""
    return with_lengths(x, lengths)


def value_of(x, values):
    """What a value is in a run: its array, cut to its lengths."""
    lengths = lengths_of(x)
    nodes = [node_in(x), *(n.node for n in lengths if isinstance(n, Size))]
    array, *counts = evaluate(nodes, {var: np.asarray(v, var.dtype) for var, v in values.items()})
    ends = iter(counts)
    return array[tuple(slice(int(next(ends)) if isinstance(n, Size) else n) for n in lengths)]


def holds(c, values):
    """If all conditions of a run hold."""
    return all(
        bool(evaluate([x.holds], {v: np.asarray(n, v.dtype) for v, n in values.items()})[0]) for x in c.limits.checks
    )
