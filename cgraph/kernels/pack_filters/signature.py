"""Filters that are computed, packed as the tile kernel reads them."""

from cgraph.kernels.signature import Signature

PACK = Signature(
    "pack_filters.pack",
    ("dtype", "unroll", "width"),
    {
        # per step: its first channel counted from the panel's first block; elements from a filter's first tap to its
        # tap
        "channels": "i8*", "taps": "i8*", "steps": "i8", "panel_channels": "i8*",
        # strides in elements: from one group, result channel in it and input channel to the next
        "f": "dtype*", "group": "i8", "k_step": "i8", "c_step": "i8",
        "k": "i8", "k_per_group": "i8", "c_per_group": "i8", "out": "dtype*",
    },
)  # fmt: skip
