"""Copies between plain and channel-blocked images, halos, and channels that move to other lanes."""

from cgraph.kernels.signature import Signature

# strides in elements; the plain side has one element from pixel to pixel
CONVERT = {
    "c": "i8", "h": "i8", "w": "i8", "blocks": "i8", "band": "i8",
    "x": "dtype*", "x_image": "i8", "x_plane": "i8", "x_row": "i8",
    "out": "dtype*", "o_image": "i8", "o_plane": "i8", "o_row": "i8",
}  # fmt: skip
TO_BLOCKED = Signature("blocked_copy.to_blocked", ("dtype", "lanes"), CONVERT)
TO_PLAIN = Signature("blocked_copy.to_plain", ("dtype", "lanes"), CONVERT)

FILL_HALO = Signature(
    "blocked_copy.fill_halo",
    ("dtype", "lanes"),
    {
        # sizes in pixels, `above` and `below` in rows; elements from one image, plane and row to the next
        "out": "dtype*", "image": "i8", "plane": "i8", "line": "i8",
        "above": "i8", "below": "i8", "h": "i8", "before": "i8", "after": "i8", "w": "i8",
        "blocks": "i8", "band": "i8", "fill": "i8",
    },
)  # fmt: skip

CHANNELS = Signature(
    "blocked_copy.channels",
    ("dtype", "is_shifted"),
    {
        # shifts: the lane of the first channel, of its block, on either side
        # stored: channels written, those beyond c zero
        "c": "i8", "stored": "i8", "h": "i8", "w": "i8", "blocks": "i8", "band": "i8",
        "x_shift": "i8", "o_shift": "i8",
        "x": "dtype*", "x_image": "i8", "x_plane": "i8", "x_row": "i8",
        "out": "dtype*", "o_image": "i8", "o_plane": "i8", "o_row": "i8",
    },
)  # fmt: skip
