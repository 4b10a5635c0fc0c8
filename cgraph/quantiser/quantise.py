"""quantise: a float network as an 8-bit one, calibrated with samples.

Ranges are observed, scales chosen, layers' biases corrected, layers that cost too much left float; then the graph is
built again with ``dequantize(quantize(x))`` where values become bytes.

Source: Jacob and others 2018, arXiv:1712.05877; Nagel and others 2021, A White Paper on Neural Network Quantization,
arXiv:2106.08295.
"""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Unpack

import numpy as np

from cgraph.errors import GraphError, InputError
from cgraph.function import Function, compile
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Var
from cgraph.passes.integers.patterns import EIGHT_BITS
from cgraph.planning.options import COMPILE_KEYWORDS, CompileKeywords
from cgraph.quantiser.layers import WeightLayer
from cgraph.quantiser.network import Network, network_of, prepare
from cgraph.quantiser.observe import ranges_of
from cgraph.quantiser.ranges import METHODS, ByteForm, weights_of
from cgraph.quantiser.rebuild import quantised_outputs
from cgraph.quantiser.report import Answers, Report, Sensitivity, places
from cgraph.quantiser.simulate import Simulation
from cgraph.record import Record, replace
from cgraph.running.samples import Samples, sample_runs
from cgraph.system.keywords import checks_keywords
from cgraph.system.progress import Tell, silent, with_progress

FEW = 16  # samples, by which biases are corrected and layers compared


class Choices(Record):
    """Options of the quantiser.

    Fields
        method: the range of a value: ``minmax`` of all samples, ``percentile`` (99.999 % of the numbers), or
            ``entropy``
        images: dtype of quantised values, uint8 or int8
        symmetric: the zero point is the middle of the range
        correct: adjust biases until every layer has the means of the float network
        skip: names of layers that stay float
        agreement: leave as many layers float, the costliest first, as are needed for this share of samples to have the
            same answer as the float network; None quantises all
        sensitivity: always compute the table of layers
    Raises
        InputError: another method or dtype, or a share outside 0 to 1
    """

    method: str = "minmax"
    images: str = "uint8"
    symmetric: bool = False
    correct: bool = True
    skip: tuple[str, ...] = ()
    agreement: float | None = None
    sensitivity: bool = False

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(f"method is {self.method!r}. Use one of {', '.join(METHODS)}")
        if self.images not in EIGHT_BITS:
            raise InputError(f"images is {self.images}. Use {' or '.join(EIGHT_BITS)}")
        if self.agreement is not None and not 0 <= self.agreement <= 1:
            raise InputError(f"agreement is {self.agreement}. Pass a share of the samples, from 0 to 1")

    @property
    def form(self) -> ByteForm:
        return ByteForm(self.images, self.symmetric)


class Quantised(Record, eq=False):
    """A quantised network.

    Fields
        outputs, inputs: its graph, for `cgraph.compile` and `cgraph.formats.onnx.save`
        report: its accuracy and its bytes, compared with the float network
    """

    outputs: tuple[Node, ...]
    inputs: tuple[Var, ...]
    report: Report

    @checks_keywords(COMPILE_KEYWORDS)
    def compile(self, **options: Unpack[CompileKeywords]) -> Function:
        """Return a Function that returns a list of the outputs; options as for `cgraph.compile`."""
        return compile(self.outputs, self.inputs, **options)


def quantise(
    outputs: Node | Sequence[Node],
    inputs: Var | Sequence[Var],
    samples: Iterable[Any],
    labels: Any = None,
    tell: Tell = silent,
    **options: Any,
) -> Quantised:
    """Quantise a network's convolutions and products, and the values between them.

    Parameters
        outputs, inputs: the graph; all other Vars keep their present values
        samples: for each run the array of the input, or a tuple with one for each input: typical data
        labels: the index of the right score in the first output, for every sample of every run, to count right answers
        tell: called with a stage's name, its progress and its size, as by `Bars`
        options: method, images, symmetric, correct, skip, agreement, sensitivity: see `Choices`; `wanted` is the
            deprecated name of `labels`
    Raises
        GraphError: no layer to quantise, an unknown name in `skip`, or the network is quantised already
        InputError: no samples; another shape or dtype; a value is not finite; not one label for each sample
        UnassignedError: a Var that is not an input has no value
    """
    labels = deprecated_labels(options, labels)
    choices = Choices(**options)
    roots = (outputs,) if isinstance(outputs, Node) else tuple(outputs)
    variables = (inputs,) if isinstance(inputs, Var) else tuple(inputs)
    runs = sample_runs(samples, variables, "quantising")
    roots = prepare(roots, variables)
    network = network_to_quantise(roots, choices)
    floats = compile(roots, variables)
    answers = answers_of(floats, runs, labels, tell)
    ranges = ranges_of(network, variables, runs, choices.method, tell)
    quanta = {x: choices.form.quantum(ranges[root]) for x, root in network.bytes.items()}
    weights = {x: weights_of(x, quanta[x.x]) for x in network.layers}
    simulation = Simulation(network, variables, quanta, choices.form, weights)
    table = tune(simulation, runs, choices, answers, tell)
    final = network.without(x.layer for x in table if x.skipped)
    new_outputs = quantised_outputs(final, quanta, choices.form, weights, simulation.biases)
    function = compile(new_outputs, variables)
    alike = answers.like(function, with_progress("check", runs, tell))
    skipped = tuple(x.name for x in network.all_layers if x not in final.layers)
    sizes, nbytes = sizes_of_weights(network.all_layers, final.layers), (floats.nbytes, function.nbytes)
    report = Report(answers.right, alike, sizes, nbytes, len(final.layers), skipped, table)
    return Quantised(new_outputs, variables, report)


def network_to_quantise(roots: tuple[Node, ...], choices: Choices) -> Network:
    """Return the network without the layers that `choices` skips. GraphError if no layer is left."""
    network = network_of(roots).without(choices.skip)
    if not network.layers:
        raise GraphError(
            "there is no convolution of images and no product by constants of float32 to quantise. "
            "Give the weights values, or fewer names in skip="
        )
    return network


def deprecated_labels(options: dict[str, Any], labels: Any) -> Any:
    """Return `labels`, or the option `wanted`, which was their name; the option is removed."""
    if "wanted" not in options:
        return labels
    warnings.warn("quantise(wanted=...) is deprecated. Use labels=...", DeprecationWarning, stacklevel=3)
    return options.pop("wanted")


def answers_of(floats: Function, samples: Samples, labels: Any, tell: Tell) -> Answers:
    """Return the outputs of the float network, with the labels."""
    outputs = tuple(floats(*arrays) for arrays in with_progress("floats", samples, tell))
    right = None if labels is None else np.asarray(labels).reshape(-1)
    count = len(places(outputs))
    if right is not None and len(right) != count:
        raise InputError(f"got {len(right)} labels for {count} samples. Pass one label for each sample")
    return Answers(outputs, right)


def tune(
    simulation: Simulation, samples: Samples, choices: Choices, answers: Answers, tell: Tell
) -> tuple[Sensitivity, ...]:
    """Return the cost of each layer, the worst first, and the layers that stay float; correct the biases of the
    others.
    """
    few, layers = samples[:FEW], list(simulation.network.layers)
    table = []
    if choices.sensitivity or choices.agreement is not None:
        table = sensitivities(simulation, few, replace(answers, outputs=answers.outputs[:FEW], labels=None), tell)
    skipped: set[str] = set()
    while True:
        active = [x for x in layers if x.name not in skipped]
        if choices.correct:
            simulation.correct(active, few, tell)
        if choices.agreement is None or not active:
            break
        simulation.choose(active)
        function = simulation.function(simulation.outputs, True)
        if answers.like(function, with_progress("agreement", samples, tell)).agreement >= choices.agreement:
            break
        skipped.add(next(x.layer for x in table if x.layer not in skipped))
    return tuple(replace(x, skipped=x.layer in skipped) for x in table)


def sensitivities(simulation: Simulation, samples: Samples, answers: Answers, tell: Tell) -> list[Sensitivity]:
    """Return the cost of quantising each layer separately, the worst first."""
    function = simulation.function(simulation.outputs, False)
    rows = []
    for layer in with_progress("sensitivity", simulation.network.layers, tell):
        simulation.choose([layer])
        rows.append(Sensitivity(layer.name, answers.like(function, samples)))
    return sorted(rows, key=lambda x: x.likeness.decibels)


def sizes_of_weights(layers: Sequence[WeightLayer], as_bytes: Sequence[WeightLayer]) -> tuple[int, int]:
    """Return the bytes of all layers' weights and biases: as floats, and with the layers `as_bytes` quantised."""
    before = sum(x.weights.nbytes + x.bias.nbytes for x in layers)
    saved = sum(3 * x.weights.size - x.bias.nbytes for x in as_bytes)  # a float for each channel's scale
    return before, before - saved
