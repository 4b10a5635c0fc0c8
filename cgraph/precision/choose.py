"""Choose the precision of each layer by runs of samples."""

from collections.abc import Callable, Mapping, Sequence

from cgraph.errors import GraphError
from cgraph.lowering.rounded_layers import RoundedLayers
from cgraph.planning.mixed_precision import BF16, FLOAT32, LayerPrecision, MixedPrecision, Tolerance, check_names
from cgraph.precision.search import Errors, RoundingChoice, choose_rounding, largest
from cgraph.running.difference import output_error
from cgraph.running.runner import Runner
from cgraph.running.samples import Samples, sample_runs
from cgraph.storage.cell import Variable

Build = Callable[[RoundedLayers | None], Runner]
"""Compiles the graph without update edges, with some layers rounded; in float32 for None."""
ELSEWHERE = "not computed in bfloat16 on this processor"


def choose_precision(
    build: Build, tolerance: Tolerance, inputs: Sequence[Variable], outputs: Sequence[str]
) -> MixedPrecision:
    """Return the precision of each layer with which the outputs of all samples stay within a tolerance.

    Parameters
        inputs: of a run
        outputs: their names
    Raises
        InputError: `samples` is empty, or one does not fit the inputs
        GraphError: `skip` has an unknown name; two runs in float32 differ by more than the tolerance
    """
    runs = sample_runs(tolerance.samples, inputs, "precision=Tolerance(...)")
    listing = RoundedLayers()
    build(listing)
    check_names(tolerance.skip, listing.multiply_adds, "skip")
    able = {x: n for x, n in listing.multiply_adds.items() if x in listing.able and x not in tolerance.skip}
    choice = RoundingChoice(frozenset(), (), {})
    if able:
        choice = choose_rounding(able, Measurement(build, runs).errors, tolerance.error)
        check_met(tolerance, choice.errors)
    layers = tuple(
        LayerPrecision(name, *computed_of(name, choice, listing, tolerance), choice.alone.get(name))
        for name in listing.multiply_adds
    )
    return MixedPrecision(layers, float(tolerance.error), tuple(zip(outputs, choice.errors)), listing.reason)


def computed_of(
    name: str, choice: RoundingChoice, listing: RoundedLayers, tolerance: Tolerance
) -> tuple[str, int, str]:
    """Return how a layer is computed, its multiply-adds, and why it stays float32."""
    count = listing.multiply_adds[name]
    if name in choice.names:
        return BF16, count, ""
    if listing.reason or name not in listing.able:
        return FLOAT32, count, listing.reason or ELSEWHERE
    return FLOAT32, count, "named in skip" if name in tolerance.skip else "beyond the accepted error"


def check_met(tolerance: Tolerance, errors: Errors) -> None:
    """Raise GraphError if the best choice exceeds the tolerance: the graph computes something random."""
    least = largest(errors)
    if least > tolerance.error:
        raise GraphError(
            f"no choice of layers meets an error of {tolerance.error:g}: two runs of the same sample in float32 differ "
            f"by {least:.2g}, which is the least that can be met. Pass a larger error, or remove what returns random "
            "numbers, such as a Python function in the graph"
        )


class Measurement:
    """Errors of outputs compared with float32.

    Fields
        build: compiles the graph
        runs: arrays of each run
        references: outputs of each run in float32
    """

    def __init__(self, build: Build, runs: Samples) -> None:
        self.build, self.runs = build, runs
        exact = build(None)
        self.references = [exact(*arrays) for arrays in runs]

    def errors(self, names: frozenset[str], count: int | None) -> Errors:
        """Return the largest error of each output over the first `count` runs, with these layers rounded."""
        function = self.build(RoundedLayers(names))
        pairs = zip(self.runs[:count], self.references)
        rows = [[output_error(x, y) for x, y in zip(function(*arrays), outputs)] for arrays, outputs in pairs]
        return tuple(max(column) for column in zip(*rows))


def precision_of(listing: RoundedLayers, before: MixedPrecision | None) -> MixedPrecision:
    """Return the precision of a lowered graph.

    Parameters
        listing: from lowering
        before: the choice that was asked for, with its measured errors; None for all layers
    Raises
        GraphError: the choice rounds a layer that the graph does not have
    """
    choice = MixedPrecision(()) if before is None else before
    check_names(choice.bf16_layers, listing.multiply_adds, "precision")
    earlier = {x.name: x for x in choice.layers}
    layers = tuple(layer_of(name, listing, earlier) for name in listing.multiply_adds)
    new = MixedPrecision(layers, choice.tolerance, choice.errors, listing.reason)
    if new.bf16_layers == choice.bf16_layers:
        return new
    return MixedPrecision(layers, choice.tolerance, (), listing.reason)  # its errors are those of another choice


def layer_of(name: str, listing: RoundedLayers, earlier: Mapping[str, LayerPrecision]) -> LayerPrecision:
    """Return how a layer of a lowered graph is computed."""
    count, before = listing.multiply_adds[name], earlier.get(name)
    alone = before.error if before else None
    if name in listing.able and (listing.names is None or name in listing.names):
        return LayerPrecision(name, BF16, count, "", alone)
    reason = listing.reason or (ELSEWHERE if name not in listing.able else "not selected")
    return LayerPrecision(name, FLOAT32, count, (before and before.reason) or reason, alone)
