"""Either: a value that is one of two, which only a run selects, since they differ in dtype or number of axes.

Branches of `If` may give such values. Each node that reads one is built for both, and its results are selected: arrays
of one dtype and number of axes become one array again. A node that only one of them fits settles the condition, which a
run checks.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cgraph.errors import UNFIT, FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.dynamic.bounds import Length, LengthBounds, node_of
from cgraph.formats.onnx.dynamic.value import Array, Ragged, lengths_of, node_in, resize_axis, with_lengths
from cgraph.formats.unspecified import UnknownError
from cgraph.ir.graph import Node
from cgraph.record import Record

Value = Any
BRANCHES = "else_branch", "then_branch"
MOST_CASES = 16  # values of one Either


class Selector(Record, eq=False):
    """The condition of an If that only a run computes.

    Fields
        condition: bool scalar
        name: of the If, for messages
        read: the condition's name in the file, for `constants`
    """

    condition: Node
    name: str
    read: str

    def when(self, holds: bool) -> Node:
        """Return the condition, or its negation."""
        return self.condition if holds else cg.logical_not(self.condition)


class Either(Record, eq=False):
    """A value that is `then` if the condition of an If holds, else `other`."""

    selector: Selector
    then: Value
    other: Value

    @property
    def text(self) -> str:
        """``float32[4,3] or float32[1,4,3]``."""
        return " or ".join(dict.fromkeys(spec_text(x) for _, x in cases_of(self)))


def spec_text(x: Value) -> str:
    """Return dtype and shape as text."""
    return x.text if isinstance(x, Ragged) else str(x.spec) if isinstance(x, Node) else "a sequence or nothing"


def cases_of(x: Value) -> Iterator[tuple[tuple[Node, ...], Value]]:
    """Yield the values that an Either may be, each with the conditions that must hold for it."""
    if not isinstance(x, Either):
        yield (), x
        return
    for holds, part in ((True, x.then), (False, x.other)):
        for conditions, value in cases_of(part):
            yield (x.selector.when(holds), *conditions), value


def resolve(x: Value, selector: Selector, holds: bool) -> Value:
    """Return what a value is in the runs in which a condition holds, or does not."""
    if not isinstance(x, Either):
        return x
    if x.selector.condition is selector.condition:
        return resolve(x.then if holds else x.other, selector, holds)
    return Either(x.selector, resolve(x.then, selector, holds), resolve(x.other, selector, holds))


def map_cases(function: Callable[[Value], Value], x: Value) -> Value:
    """Apply a function to each value that an Either may be."""
    if not isinstance(x, Either):
        return function(x)
    return Either(x.selector, map_cases(function, x.then), map_cases(function, x.other))


def are_alike(x: Value, y: Value) -> bool:
    """Return True if a value can be either of two: arrays of one dtype and number of axes."""
    arrays = isinstance(x, Node | Ragged) and isinstance(y, Node | Ragged)
    return arrays and (x.dtype, x.ndim) == (y.dtype, y.ndim)


def select_array(limits: LengthBounds, condition: Node, x: Array, y: Array) -> Array:
    """Return `x` if a condition holds, else `y`; axes that differ in length become dynamic."""
    lengths: dict[int, Length] = {}
    nodes = [node_in(x), node_in(y)]
    for axis, (n, m) in enumerate(zip(lengths_of(x), lengths_of(y))):
        room = max(node.shape[axis] for node in nodes)
        nodes = [resize_axis(node, axis, room) for node in nodes]
        lengths[axis] = n if n == m else limits.length(cg.where(condition, node_of(n), node_of(m)))
    return with_lengths(cg.where(condition, *nodes), lengths)


def select(limits: LengthBounds, selector: Selector, then: Value, other: Value) -> Value:
    """Return one of two values by a condition: an array if they are alike, else an Either.

    Raises
        UnknownError: it would have too many cases
    """
    then, other = resolve(then, selector, True), resolve(other, selector, False)
    if then is other:
        return then
    if are_alike(then, other):
        return select_array(limits, selector.condition, then, other)
    value = Either(selector, then, other)
    if sum(1 for _ in cases_of(value)) > MOST_CASES:
        raise UnknownError(
            f"the conditions of several Ifs leave more than {MOST_CASES} dtypes and numbers of axes open",
            constants=[selector.read],
        )
    limits.choices += 1
    return value


def lacks_a_value(error: BaseException | None) -> bool:
    """Return True if an error, or one that it follows from, is an UnknownError."""
    while error is not None and not isinstance(error, UnknownError):
        error = error.__cause__
    return error is not None


def build_both(
    limits: LengthBounds,
    selector: Selector,
    build: Callable[[bool], Sequence[Value]],
    text: Callable[[Exception], str],
) -> list[Value]:
    """Build values for both outcomes of a condition and select them.

    If one of them is refused, the other one is the result, and a run checks that the condition selects it.

    Parameters
        build: returns the values for an outcome
        text: returns the message of an error
    Raises
        FormatError: both are refused
        UnknownError: one lacks a size, a value or a maximum
    """
    results: dict[bool, Sequence[Value]] = {}
    refusals: dict[bool, str] = {}
    for holds in (False, True):
        count = len(limits.checks)
        try:
            with limits.under(selector.when(holds)):
                results[holds] = build(holds)
        except UNFIT as error:
            if lacks_a_value(error):
                raise
            del limits.checks[count:]
            refusals[holds] = text(error)
    if not results:
        both = "; ".join(f"with {BRANCHES[holds]} {reason}" for holds, reason in refusals.items())
        raise FormatError(f"neither branch of If {selector.name!r:.60} fits: {both}")
    if refusals:
        ((holds, reason),) = refusals.items()
        message = (
            f"If {selector.name!r:.60} takes {BRANCHES[holds]}, which was refused when the file was read: {reason}"
        )
        limits.check(selector.when(not holds), message)
        return list(results[not holds])
    return [select(limits, selector, then, other) for then, other in zip(results[True], results[False])]
