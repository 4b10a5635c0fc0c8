"""Importers of Fourier transforms and of the parts of complex numbers."""

from collections.abc import Callable

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.tflite.context import TfliteContext, operator
from cgraph.formats.tflite.value import TfliteValue
from cgraph.ir.graph import Node
from cgraph.ops.fourier import half_spectrum, transform

WORK = 64  # computed elements of tables for each element of a transformed axis
PARTS: dict[str, Callable[[Node], Node]] = {
    "COMPLEX_ABS": lambda x: cg.abs(x),
    "IMAG": lambda x: cg.imag(x),
    "REAL": lambda x: cg.real(x),
}


@operator("RFFT2D")
def rfft2d(c: TfliteContext) -> Node:
    """Import RFFT2D; operands: images ``[..., h, w]``, and the lengths to which both axes are cut or padded."""
    x, lengths = c[0].plain, c.ints(1)
    if len(lengths) != 2 or min(lengths) < 1 or x.ndim < 2:
        raise FormatError(f"lengths {lengths} do not fit {x.spec}. Give one for each of the last two axes")
    c.spend(nbytes=WORK * sum(lengths), work=WORK * sum(lengths))
    half = half_spectrum(x, lengths[1], -1, None)
    return half if lengths[0] == x.shape[-2] == 1 else transform(half, [lengths[0]], [-2], False, None)


@operator(*PARTS)
def part(c: TfliteContext) -> TfliteValue:
    return TfliteValue(PARTS[c.kind](c[0].node), first=c[0].first)
