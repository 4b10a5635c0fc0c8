"""The table of ``cgraph plan MODEL --precisions``: a model's bytes in float32, bfloat16 and int8."""

from collections.abc import Callable, Mapping
from typing import Any

from cgraph.cli.bench import random_inputs
from cgraph.cli.model import CliModel
from cgraph.cli.quantise import inputs_of
from cgraph.errors import GraphError
from cgraph.function import Function
from cgraph.quantiser import quantise
from cgraph.record import replace
from cgraph.view.report import report


def precision_lines(model: CliModel, constants: Mapping[str, Any], reference: str) -> list[str]:
    """Return the bytes of arena, constants and both, for each way to compute a model.

    Parameters
        constants: values of inputs; others are drawn, since sizes do not depend on the ranges that the quantiser finds
        reference: the MODEL argument
    Raises
        FormatError: the model is compiled already, or keeps a state
    """
    inputs = inputs_of(model, reference)
    values = random_inputs(replace(model, inputs=inputs)) | dict(constants)
    sample = tuple(values[x.name] for x in inputs)
    ways: dict[str, Callable[[], Function]] = {
        "float32": model.compiled,
        "bfloat16 weights": lambda: model.compiled(weights_dtype="bfloat16"),
        "bf16 products": lambda: model.compiled(precision="bf16"),
        "int8": lambda: quantise(model.outputs, inputs, [sample], correct=False).compile(),
    }
    lines = [f"{'':<18}{'arena':>14}{'constants':>14}{'together':>14}"]
    for name, compiled in ways.items():
        try:
            facts = report(compiled())
        except GraphError as error:
            lines.append(f"{name:<18}{error}")
            continue
        sizes = facts.nbytes, facts.const_nbytes, facts.nbytes + facts.const_nbytes
        lines.append(f"{name:<18}" + "".join(f"{size:>14}" for size in sizes))
    return lines
