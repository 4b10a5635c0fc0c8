"""Strings of a file as integers: the graph is numeric, its strings are looked up before and after a run.

Each string of the file has a number, its code. An input of strings is an int64 Var of codes, which a call looks up; a
string that the file does not have gets the next free number for one call. Operators that move elements move codes, and
those that compare strings compare codes. Outputs of strings are looked up after the run.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from cgraph.engine.reference import evaluate
from cgraph.errors import damaged_file
from cgraph.formats.allowance import Allowance
from cgraph.ir.graph import Node
from cgraph.ir.traverse import post_order
from cgraph.ops.join import Concat
from cgraph.ops.leaf import Const, ConstOp, Var, VarOp
from cgraph.ops.shape import ViewOp
from cgraph.ops.take import Take
from cgraph.record import Record
from cgraph.running.text_features import TextFeature

STRING = 8  # ONNX's dtype number
FAR = 1 << 40  # above every code
STRING_COST = 200  # bytes of a string in the table, and work to look one up
MOVES = frozenset(
    "Identity Reshape Flatten Squeeze Unsqueeze Transpose Concat Split Slice Gather GatherElements GatherND Expand "
    "Tile Where Compress ReverseSequence ai.onnx.ml.ArrayFeatureExtractor".split()
)
"""Operators that move strings without looking at them, so they move codes."""
READS = frozenset(("Equal", "Shape", "Size"))
"""Operators whose results for codes are those for strings."""


class CodedStrings(Record, eq=False):
    """A value of strings, as their codes."""

    node: Any

    @property
    def text(self) -> str:
        """``string[4,2]``."""
        return f"string[{','.join(map(str, self.node.shape))}]" if isinstance(self.node, Node) else "string[…]"


class Tokens(Record, eq=False):
    """The tokens of an input's texts, whose number a run decides; only n-grams of them are counted.

    Fields
        source: the input
        texts: the feature of the texts, with a splitter
    """

    source: Var
    texts: TextFeature

    @property
    def text(self) -> str:
        """``string[4,…]``."""
        return f"string[{','.join(map(str, self.texts.index.shape))},…]"


class Vocabulary:
    """The strings of one file. Changes: it grows while the file is read.

    Fields
        features: the input and the feature of each Var whose value a call computes of an input's strings

    Parameters
        allowance: the remaining cost of reading the file
    """

    def __init__(self, allowance: Allowance) -> None:
        self.allowance = allowance
        self.numbers: dict[str, int] = {}
        self.features: dict[Var, tuple[Var, TextFeature]] = {}

    def feature(self, source: Var, feature: TextFeature) -> Var:
        """Return a Var whose value a call computes of the strings of an input."""
        x = Var(feature.shape, "int64")
        self.features[x] = source, feature
        return x

    def texts(self, node: Node) -> tuple[Var, TextFeature] | None:
        """Return the input whose strings a node of codes moves, and where to; None if it depends on anything else."""
        order = post_order([node])
        leaves = [x for x in order if isinstance(x, Var)]
        if len(leaves) != 1 or any(not isinstance(x.op, ConstOp | VarOp | ViewOp | Concat | Take) for x in order):
            return None
        (leaf,) = leaves
        nbytes = 32 * sum(x.size for x in order)
        self.allowance.spend("the texts of an input", nbytes=nbytes, work=nbytes)
        places = np.arange(leaf.size).reshape(leaf.shape)
        index, other = (evaluate([node], {leaf: x})[0] for x in (places, places + FAR))
        if not np.array_equal(index + FAR, other):
            return None  # some of them are constants
        source, base = self.features.get(leaf, (leaf, None))
        if base is None:
            return source, TextFeature(index, "NONE")
        return source, TextFeature(base.index.reshape(-1)[index], base.case)

    def codes(self, strings: Iterable[str]) -> np.ndarray:
        """Return the codes of strings, int64."""
        listed = list(strings)
        self.allowance.spend("its strings", nbytes=STRING_COST * len(listed), work=STRING_COST * len(listed))
        numbers = [self.numbers.setdefault(word, len(self.numbers)) for word in listed]
        return np.array(numbers, np.int64)

    def constant(self, strings: np.ndarray) -> CodedStrings:
        """Return an array of strings as a constant."""
        return CodedStrings(Const(self.codes(strings.reshape(-1)).reshape(strings.shape)))


def strings_of(proto: Any, shape: tuple[int, ...], allowance: Allowance) -> np.ndarray:
    """Return the strings of a TensorProto as objects. FormatError if their number does not fit the shape."""
    count, letters = len(proto.string_data), sum(map(len, proto.string_data))
    if count != np.prod(shape, dtype=object):
        raise damaged_file(f"tensor {proto.name!r:.60} of strings {list(shape)} holds {count} values")
    allowance.spend(
        f"tensor {proto.name!r:.60}", nbytes=STRING_COST * count + letters, work=STRING_COST * count + letters
    )
    strings = np.empty(count, object)
    strings[:] = [word.decode("utf-8", "replace") for word in proto.string_data]
    return strings.reshape(shape)
