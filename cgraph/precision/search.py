"""Search for the layers that may be rounded within an accepted error of the outputs.

All layers together are tried first. If they exceed the error, each layer is rounded separately, and layers are ordered
by the square of their error for each multiply-add, since errors of many roundings add up as squares. Bisection then
selects the longest beginning of this order whose measured error is accepted. Every step is deterministic.
"""

from collections.abc import Callable, Mapping

from cgraph.record import Record

FEW = 16  # samples by which single layers are compared
Errors = tuple[float, ...]
Measure = Callable[[frozenset[str], int | None], Errors]
"""The error of each output with these layers rounded, over the first samples of a count, or over all."""


class RoundingChoice(Record):
    """The layers that are rounded.

    Fields
        names: of these layers
        errors: the measured error of each output
        alone: the largest error of an output with one layer rounded, by name; empty if all layers may round
    """

    names: frozenset[str]
    errors: Errors
    alone: Mapping[str, float]


def choose_rounding(layers: Mapping[str, int], measure: Measure, accepted: float) -> RoundingChoice:
    """Return the layers to round, such that no output has a larger measured error than accepted; none if even float32
    exceeds it.

    Parameters
        layers: multiply-adds of each layer that can round
        measure: measures errors of the outputs
    """
    every = frozenset(layers)
    errors = measure(every, None)
    if largest(errors) <= accepted:
        return RoundingChoice(every, errors, {})
    alone = {name: largest(measure(frozenset([name]), FEW)) for name in layers}
    order = sorted(layers, key=lambda name: alone[name] ** 2 / max(layers[name], 1))
    return longest_beginning(order, alone, measure, accepted)


def longest_beginning(
    order: list[str], alone: Mapping[str, float], measure: Measure, accepted: float
) -> RoundingChoice:
    """Return the choice of the first layers of an order that bisection ends at; all layers exceed the error."""
    low, high = 0, len(order)
    errors = None
    while high - low > 1:
        middle = (low + high) // 2
        trial = measure(frozenset(order[:middle]), None)
        if largest(trial) <= accepted:
            low, errors = middle, trial
        else:
            high = middle
    names = frozenset(order[:low])
    return RoundingChoice(names, measure(names, None) if errors is None else errors, alone)


def largest(errors: Errors) -> float:
    """Return the largest error; NaN-free, since a NaN on one side is an infinite error."""
    return max(errors, default=0.0)
