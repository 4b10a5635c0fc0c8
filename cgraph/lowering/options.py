"""Options of lowering."""

import numpy as np

from cgraph.ir.graph import Node
from cgraph.kernels.mapped import Keep, in_place
from cgraph.lowering.rounded_layers import RoundedLayers
from cgraph.record import Record


class LoweringOptions(Record, eq=False):
    """Settings of lowering.

    Fields
        passes: rewrite the graph first; False only decomposes int8 ops and aligns constants
        winograd: use it where it is faster; False computes every convolution directly, which is more exact
        keep: stores packed constants
        storage_dtype: the dtype to which large weights are rounded; None stores them unchanged
        pairs: convolutions and products may round their factors to bfloat16; they do where the target multiplies such
            numbers faster than float32
        layers: with `pairs`, the layers that may round; None allows all
    """

    passes: bool = True
    winograd: bool = True
    keep: Keep = in_place
    storage_dtype: np.dtype | None = None
    pairs: bool = False
    layers: RoundedLayers | None = None

    def rounds(self, layer: Node) -> bool:
        """Return True if a convolution or product that can round its factors does; called last, once it can."""
        return self.pairs and (self.layers is None or self.layers.allow(layer))
