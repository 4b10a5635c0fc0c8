"""Signature of non-maximum suppression in blocks of threads."""

from cgraph.kernels.boxes.signature import SUPPRESS as BY_TASKS
from cgraph.kernels.signature import Signature

# a block: one image
SUPPRESS = Signature("boxes.gpu.suppress", BY_TASKS.params, BY_TASKS.args)
