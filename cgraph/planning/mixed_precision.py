"""The precision of a function's products: what the user accepts, and what is computed."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from cgraph.errors import GraphError
from cgraph.record import Record
from cgraph.terminal import visible

LEAST_ERROR = 2.0**-24
"""The relative error of a number that is rounded to float32: no function of float32 outputs has a smaller one."""
FLOAT32, BF16 = "float32", "bf16"


class Tolerance(Record, eq=False):
    """A relative error of the outputs that the user accepts in exchange for faster products.

        predict = cg.compile(y, [x], precision=cg.Tolerance(1e-2, samples=[image]))

    `compile` measures the outputs of these samples and decides for each layer whether its factors are rounded to
    bfloat16. See docs/half.md.

    Fields
        error: the largest accepted difference from the outputs in float32, relative to the largest magnitude of the
            same output; of integers and booleans, the share of elements that may differ
        samples: for each run the array of the input, or a tuple with one for each input: typical data
        skip: names of layers that stay float32
    Raises
        GraphError: `error` is not a finite number, or smaller than the error of one rounding to float32; `skip` is not
            a list of names
    """

    error: float
    samples: Sequence[Any]
    skip: Sequence[str] = ()

    def __post_init__(self) -> None:
        is_number = isinstance(self.error, int | float | np.integer | np.floating) and not isinstance(self.error, bool)
        if not is_number or not math.isfinite(self.error):
            raise GraphError(f"the error of a Tolerance is a finite number, not {self.error!r:.60}. Pass 1e-2, say")
        if self.error < LEAST_ERROR:
            raise GraphError(
                f"no outputs of float32 have an error of {self.error:g}: rounding them to float32 is an error of "
                f"{LEAST_ERROR:.2g}. Pass at least {LEAST_ERROR:.2g}, or leave out precision="
            )
        if isinstance(self.skip, str) or not all(isinstance(name, str) for name in self.skip):
            raise GraphError(f"skip takes names of layers, not {self.skip!r:.60}. Pass a list such as ['conv1']")

    def __repr__(self) -> str:
        return f"Tolerance({self.error!r})"


class LayerPrecision(Record):
    """How one layer is computed.

    Fields
        name: of its weights, of the layer or of the file's node, or of its op; distinct
        computed: ``bf16`` or ``float32``
        multiply_adds: number of multiply-adds in one run
        reason: why the layer stays float32; empty for bf16
        error: of the outputs if only this layer rounds; None if it was not measured
    """

    name: str
    computed: str
    multiply_adds: int
    reason: str = ""
    error: float | None = None


class MixedPrecision(Record):
    """How the convolutions and products of a function are computed.

    ``compile(..., precision=function.precision)`` makes the same choice again, without samples.

    Fields
        layers: in running order
        tolerance: the accepted error; None if none was stated
        errors: the measured error of each output, by name; empty if none was measured
        reason: why this processor computes all layers in float32; else empty
    """

    layers: tuple[LayerPrecision, ...]
    tolerance: float | None = None
    errors: tuple[tuple[str, float], ...] = ()
    reason: str = ""

    @property
    def bf16_layers(self) -> frozenset[str]:
        """The names of the layers that round to bfloat16."""
        return frozenset(x.name for x in self.layers if x.computed == BF16)

    def __str__(self) -> str:
        return visible("\n".join([*self.summary(), *self.table()]))

    def facts(self) -> dict[str, Any]:
        """Return the fields as numbers, texts and lists."""
        layers = [[getattr(x, name) for name in LayerPrecision._fields] for x in self.layers]
        errors = [list(x) for x in self.errors]
        return {"layers": layers, "tolerance": self.tolerance, "errors": errors, "reason": self.reason}

    def summary(self) -> list[str]:
        """Return lines about all layers together."""
        count, total = len(self.bf16_layers), sum(x.multiply_adds for x in self.layers)
        share = sum(x.multiply_adds for x in self.layers if x.computed == BF16) / max(total, 1)
        lines = [f"{count} of {len(self.layers)} layers in bf16, {share:.1%} of their multiply-adds"]
        if self.reason:
            lines.append(f"float32: {self.reason}")
        if self.tolerance is not None:
            errors = ", ".join(f"{name} {error:.2g}" for name, error in self.errors)
            measured = f"measured error of {errors}" if errors else "no error was measured"
            lines.append(f"{measured}; accepted {self.tolerance:g}")
        return lines

    def table(self) -> list[str]:
        """Return a line for each layer."""
        if not self.layers:
            return []
        lines = [f"{'computed':<10}{'multiply-adds':>14}{'error alone':>13}  layer"]
        for x in self.layers:
            alone = "" if x.error is None else f"{x.error:.2g}"
            reason = f"  ({x.reason})" if x.reason and x.reason != self.reason else ""
            lines.append(f"{x.computed:<10}{x.multiply_adds:>14}{alone:>13}  {x.name}{reason}")
        return lines


def check_names(names: Iterable[str], layers: Iterable[str], option: str) -> None:
    """Raise GraphError if a name is not that of a layer."""
    there = tuple(layers)
    for name in sorted(names):
        if name not in there:
            raise GraphError(
                f"{option} has {name!r:.60}, which is not a layer of this graph. Use names of "
                f"{', '.join(there) or 'none, since it has no products of float32'}"
            )
