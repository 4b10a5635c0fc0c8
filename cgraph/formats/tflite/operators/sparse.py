"""Importer of sparse constants, which are dense since they were read."""

from cgraph.formats.tflite.context import TfliteContext, operator
from cgraph.formats.tflite.value import TfliteValue


@operator("DENSIFY", on_bytes=False)
def densify(c: TfliteContext) -> TfliteValue:
    return c[0]
