"""Boxes read from images, and the gradient for these, in blocks of threads: a thread has `EACH` planes of one place."""

from cgraph.kernels.regions import signature
from cgraph.kernels.signature import Signature

EACH = 8  # planes, so that the positions of a place's samples are computed once for them

ALIGN = Signature("regions.gpu.align", signature.ALIGN.params, signature.ALIGN.args)
# n: images
SPREAD = Signature("regions.gpu.spread", signature.SPREAD.params, {"n": "i8", **signature.SPREAD.args})
