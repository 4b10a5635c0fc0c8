"""Convolutions, pools, and images at places between the pixels."""

from typing import Any

import numpy as np

from tests.support.draws import Draws
from tests.support.onnx_draws.draws import Model, model, operator

PADDINGS = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")


def windows(d: Draws, rank: int, dilated: bool = True, **more: Any) -> dict[str, Any]:
    """Attributes of a window of `rank` axes; pads are smaller than the window."""
    kernel = [d.whole(1, 3) for _ in range(rank)]
    how = d.of("NOTSET", *PADDINGS)
    found = {"kernel_shape": kernel} | d.maybe(strides=[d.whole(1, 3) for _ in range(rank)])
    if how == "NOTSET":
        found |= d.maybe(pads=[d.whole(0, k - 1) for k in kernel * 2])
        found |= d.maybe(dilations=[d.whole(1, 2) for _ in range(rank)]) if dilated else {}
    else:
        found["auto_pad"] = how
    return found | more


def without_gaps(how: dict[str, Any]) -> dict[str, Any]:
    """Steps no longer than the window: with others ONNX Runtime reads another padding out of `auto_pad`."""
    steps = {name: [min(pair) for pair in zip(v, how["kernel_shape"])] for name, v in how.items() if name == "strides"}
    return how | steps


def image(d: Draws, channels: int, rank: int) -> np.ndarray:
    return d.normal(d.whole(1, 2), channels, *(d.whole(6, 9) for _ in range(rank)))


@operator("Conv")
def conv(d: Draws) -> Model:
    rank, groups, each = d.whole(1, 3), d.of(1, 1, 2, 3), d.whole(1, 2)
    how = windows(d, rank)
    filters = d.normal(groups * d.whole(1, 3), each, *how["kernel_shape"])
    how = how if d.of(True, False) else {k: v for k, v in how.items() if k != "kernel_shape"}
    bias = [d.normal(len(filters))] if d.of(True, False) else []
    more = {"group": groups} if groups > 1 else {}
    return model("Conv", image(d, groups * each, rank), filters, *bias, **how, **more)


@operator("ConvTranspose")
def conv_transpose(d: Draws) -> Model:
    rank, groups, each = d.whole(1, 2), d.of(1, 2), d.whole(1, 2)
    how = windows(d, rank)
    if "auto_pad" in how:
        how = without_gaps(how)
    else:
        how |= d.maybe(output_padding=[d.whole(0, s - 1) for s in how.get("strides", [1] * rank)])
    filters = d.normal(groups * each, d.whole(1, 2), *how["kernel_shape"])
    bias = [d.normal(filters.shape[1] * groups)] if d.of(True, False) else []
    more = {"group": groups} if groups > 1 else {}
    return model("ConvTranspose", image(d, groups * each, rank), filters, *bias, **how, **more)


@operator("MaxPool")
def max_pool(d: Draws) -> Model:
    rank = d.whole(1, 3)
    how = without_gaps(windows(d, rank, ceil_mode=d.of(0, 1)))
    return model("MaxPool", image(d, 2, rank), results=d.of(1, 2), **how)


@operator("AveragePool")
def average_pool(d: Draws) -> Model:
    rank = d.whole(1, 3)
    how = without_gaps(windows(d, rank, ceil_mode=d.of(0, 1))) | d.maybe(count_include_pad=1)
    return model("AveragePool", image(d, 2, rank), **how)


@operator("LpPool")
def lp_pool(d: Draws) -> Model:
    rank = d.whole(1, 2)
    return model(
        "LpPool", image(d, 2, rank), **without_gaps(windows(d, rank, ceil_mode=d.of(0, 1))), **d.maybe(p=d.of(1, 3))
    )


@operator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(d: Draws, kind: str) -> Model:
    return model(kind, image(d, 2, d.whole(1, 3)), **(d.maybe(p=d.of(1, 3)) if "Lp" in kind else {}))


@operator("Resize")
def resize(d: Draws) -> Model:
    """Not drawn: a window of a crop, and factors to no whole size where corners keep their places."""
    x = d.normal(1, d.whole(1, 2), d.whole(2, 6), d.whole(2, 6))
    mode = d.of("nearest", "linear", "cubic")
    places = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
    how = {"mode": mode} | d.maybe(coordinate_transformation_mode=d.of(*places))
    if mode == "nearest":
        how |= d.maybe(nearest_mode=d.of("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
    if mode == "cubic":
        how |= d.maybe(cubic_coeff_a=-0.5, exclude_outside=1)
    if "coordinate_transformation_mode" not in how and mode != "cubic" and d.of(True, False, False):
        return model("Resize", x, np.array([1, 1, 2, d.of(0.5, 3)], "f4"), opset=10, constant=(1,), mode=mode)
    if how.get("coordinate_transformation_mode") == "align_corners" or d.of(True, False):
        sizes = np.array([*x.shape[:2], d.whole(1, 9), d.whole(1, 9)])
        return model("Resize", x, None, None, sizes, constant=(3,), **how)
    scales = np.array([1, 1, d.of(0.5, 0.75, 1.5, 2.0), d.of(0.5, 1.0, 1.25, 3.0)], "f4")
    return model("Resize", x, None, scales, constant=(2,), **how)


@operator("GridSample")
def grid_sample(d: Draws) -> Model:
    x, n = d.normal(d.whole(1, 2), 2, d.whole(1, 5), d.whole(1, 5)), d.whole(1, 4)
    grid = d.rng.uniform(-1.6, 1.6, (x.shape[0], n, 3, 2)).astype("f4")
    mode = d.of("linear", "nearest", "cubic")
    more = d.maybe(padding_mode=d.of("zeros", "border", "reflection"), align_corners=1)
    return model("GridSample", x, grid, opset=20, mode=mode, **more)


@operator("AffineGrid")
def affine(d: Draws) -> Model:
    axes = d.of(2, 3)
    size = np.array([2, 3, *(d.whole(2, 4) for _ in range(axes))])
    return model("AffineGrid", d.normal(2, axes, axes + 1), size, opset=20, constant=(1,), **d.maybe(align_corners=1))


@operator("RoiAlign")
def regions(d: Draws) -> Model:
    x, count = d.normal(2, 2, d.whole(3, 6), d.whole(3, 6)), d.whole(1, 3)
    begin = d.rng.uniform(-1, 4, (count, 2))
    boxes = np.concatenate([begin, begin + d.rng.uniform(0.2, 6, (count, 2))], 1).astype("f4")
    if d.of(True, False):  # points on pixels, and on the border beyond which there are none
        boxes = np.rint(boxes) * np.float32([1, 1, 2, 2])
    more = d.maybe(
        mode=d.of("avg", "max") if d.of(True, False) else "avg",
        output_height=d.whole(1, 3), output_width=d.whole(1, 3), sampling_ratio=d.whole(1, 3), spatial_scale=0.5,
        coordinate_transformation_mode=d.of("half_pixel", "output_half_pixel"),
    )  # fmt: skip
    more["mode"] = "avg"  # of maxima ONNX Runtime has another reading
    opset = 10 if "coordinate_transformation_mode" not in more and d.of(True, False) else 16
    return model("RoiAlign", x, boxes, d.numbers("int64", count, low=0, high=1), opset=opset, constant=(1,), **more)


@operator("Col2Im")
def columns(d: Draws) -> Model:
    sizes, block = [d.whole(3, 5), d.whole(3, 5)], [d.whole(1, 2), d.whole(1, 2)]
    pads, steps, apart = [d.whole(0, 1) for _ in range(4)], [d.whole(1, 2) for _ in "hw"], [d.whole(1, 2) for _ in "hw"]
    counts = [
        (n + pads[i] + pads[i + 2] - a * (b - 1) - 1) // s + 1
        for i, (n, b, s, a) in enumerate(zip(sizes, block, steps, apart))
    ]
    x = d.normal(d.whole(1, 2), 2 * block[0] * block[1], counts[0] * counts[1])
    given = np.array(sizes), np.array(block)
    return model("Col2Im", x, *given, opset=18, constant=(1, 2), pads=pads, strides=steps, dilations=apart)


@operator("MaxUnpool")
def unpool(d: Draws) -> Model:
    """Not drawn: the shape of the result, in which ONNX Runtime counts places otherwise than ONNX."""
    window, steps = [d.whole(1, 3), d.whole(1, 3)], [d.whole(2, 3), d.whole(2, 3)]
    pads = [d.whole(0, min(k - 1, 1)) for k in window * 2]
    x = d.normal(1, 2, 3, 4)
    sizes = [(n - 1) * s + k - a - b for n, s, k, a, b in zip(x.shape[2:], steps, window, pads, pads[2:])]
    places = d.rng.permutation(2 * sizes[0] * sizes[1])[: x.size].reshape(x.shape)
    more = {"pads": pads} if any(pads) else {}
    return model("MaxUnpool", x, places, kernel_shape=window, strides=steps, **more)
