"""Choosing boxes in blocks of threads."""

from cgraph.kernels.signature import Signature
from cgraph.kernels.signatures.boxes import SUPPRESS as BY_TASKS

# a block: one picture
SUPPRESS = Signature("gpu.boxes.suppress", BY_TASKS.params, BY_TASKS.args)
