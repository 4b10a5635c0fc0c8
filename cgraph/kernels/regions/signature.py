"""Boxes read from images of several sizes, and the gradient for those of one size; steps in elements."""

from cgraph.kernels.signature import Args, Signature, Words

# images of one size: address, steps, size, and the factor from the boxes' coordinates to pixels
IMAGES = {
    "at": "address", "image": "i8", "plane": "i8", "row": "i8", "column": "i8", "rows": "i8", "columns": "i8",
    "scale": "f8",
}  # fmt: skip

PARAMS = ("dtype", "samples", "grid", "is_blocked")  # of the images, and of the cells as well unless `is_apart`
BOXES: Args = {
    # corners [count, 4]; the image and the size of images of each
    "boxes": "dtype*", "batch": "i8*", "level": "i8*", "count": "i8",
    "cells": "dtype*", "box": "i8", "plane": "i8", "row": "i8", "column": "i8", "rows": "i8", "columns": "i8",
    "planes": "i8",
}  # fmt: skip

# n images of each of the `sizes`; `error`: the word to set if a box names an image that does not exist
# is_apart: the images are channel-blocked, but each of the `channels` of the cells has a plane of its own
ALIGN = Signature(
    "regions.align",
    (*PARAMS, "is_apart"),
    {
        **BOXES, "channels": "i8", "n": "i8", "sizes": "i8", "error": "address?",
        "images": Words(tuple(IMAGES.values()), lambda values: values.sizes),
    },
)  # fmt: skip

# which: the size whose boxes count; its images are the result
SPREAD = Signature(
    "regions.spread",
    PARAMS,
    {**BOXES, "which": "i8", "images": Words(tuple(IMAGES.values()), lambda _: 1)},
)
