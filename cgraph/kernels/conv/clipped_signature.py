"""Direct convolution by some taps of its filters."""

from cgraph.kernels.conv.signature import TILE as WHOLE
from cgraph.kernels.signature import Signature

# picks: the step of the packed filters of each entry of `offsets`
TILE = Signature("conv.clipped.tile", WHOLE.params, {**WHOLE.args, "picks": "i8*"})
