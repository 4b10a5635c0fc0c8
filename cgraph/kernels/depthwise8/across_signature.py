"""Depthwise convolution of bytes by vectors of one block of channels; params and arguments as for halves."""

from cgraph.kernels.depthwise8 import halves_signature
from cgraph.record import replace

ROWS = replace(halves_signature.ROWS, family="depthwise8.across.rows")
