"""Boxes read from images, and the gradient for these, in blocks of threads: a thread has `EACH` planes of one place."""

from cgraph.kernels.signature import Signature
from cgraph.kernels.signatures import regions

EACH = 8  # planes, so that where a place's samples lie is found once for them

ALIGN = Signature("gpu.regions.align", regions.ALIGN.params, regions.ALIGN.args)
# n: images
SPREAD = Signature("gpu.regions.spread", regions.SPREAD.params, {"n": "i8", **regions.SPREAD.args})
