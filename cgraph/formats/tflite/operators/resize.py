"""Images of another size."""

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.tflite.context import Context, images, operator
from cgraph.formats.tflite.operators.conv import image
from cgraph.formats.tflite.value import Value


def coordinates(c: Context) -> str:
    """Where results lie among the elements."""
    corners, half = c.option("align_corners"), c.option("half_pixel")
    if corners and half:
        raise FormatError("corners that are aligned and centres of pixels exclude each other")
    return "align_corners" if corners else "half_pixel" if half else "asymmetric"


@operator("RESIZE_BILINEAR")
def bilinear(c: Context) -> Value:
    return images(cg.resize(image(c, 0), c.ints(1), mode="linear", coordinates=coordinates(c)))


@operator("RESIZE_NEAREST_NEIGHBOR")
def nearest(c: Context) -> Value:
    """The element at ``floor(i * scale)``, or the nearest one, of two the later."""
    where = coordinates(c)
    rounding = "floor" if where == "asymmetric" else "round_prefer_ceil"
    return images(cg.resize(image(c, 0), c.ints(1), mode="nearest", coordinates=where, rounding=rounding))
