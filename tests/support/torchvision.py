"""torchvision without its compiled library, which is not there for every build of torch: the two ops that Mask R-CNN
needs, in plain torch."""

import importlib
import sys
from typing import Any

NAMES = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width,"
    " int sampling_ratio, bool aligned) -> Tensor",
)
UNUSED = (
    "qnms _roi_align_backward qroi_align roi_pool _roi_pool_backward ps_roi_align _ps_roi_align_backward ps_roi_pool "
    "_ps_roi_pool_backward deform_conv2d _deform_conv2d_backward box_iou_rotated"
).split()


def load() -> Any:
    """The module torchvision. ImportError when it, or torch, is not installed."""
    torch = importlib.import_module("torch")
    if "torchvision" in sys.modules:
        return sys.modules["torchvision"]
    library = torch.library.Library("torchvision", "DEF")
    for schema in (*NAMES, *(f"{name}(Tensor x) -> Tensor" for name in UNUSED)):
        library.define(schema)
    library.impl("nms", suppressed, "CPU")
    torchvision = importlib.import_module("torchvision")
    plain = importlib.import_module("torchvision.ops.roi_align")
    library.impl("roi_align", lambda *given: aligned(plain, *given), "CompositeImplicitAutograd")
    torchvision.extension._assert_has_ops = torchvision.ops.boxes._assert_has_ops = lambda: None
    plain._assert_has_ops, plain._has_ops = lambda: None, lambda: True  # else it would compile its own form
    torchvision.library_of_tests = library  # what it defines lasts as long as it does
    return torchvision


def suppressed(boxes: Any, scores: Any, share: float) -> Any:
    """Places of the boxes that stay, by falling score."""
    torch = sys.modules["torch"]
    order, kept = torch.argsort(scores, descending=True, stable=True), []
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    while len(order):
        first, rest = order[0], order[1:]
        kept.append(first)
        low, high = torch.maximum(boxes[first, :2], boxes[rest, :2]), torch.minimum(boxes[first, 2:], boxes[rest, 2:])
        inside = (high - low).clamp(min=0).prod(1)
        order = rest[~(inside / (areas[first] + areas[rest] - inside) > share)]
    return torch.stack(kept) if kept else torch.zeros(0, dtype=torch.int64)


def aligned(plain: Any, x: Any, rois: Any, scale: float, rows: int, columns: int, samples: int, half: bool) -> Any:
    """torchvision's own form in plain torch, which forgets that samples beyond one pixel outside are 0."""
    bilinear = plain._bilinear_interpolate

    def inside(images: Any, batch: Any, y: Any, z: Any, ymask: Any, xmask: Any) -> Any:
        found = bilinear(images, batch, y, z, ymask, xmask)
        height, width = images.shape[2:]
        seen = [((at >= -1) & (at <= n)).to(found.dtype) for at, n in ((y, height), (z, width))]
        return found * seen[0][:, None, :, None, :, None] * seen[1][:, None, None, :, None, :]

    plain._bilinear_interpolate = inside
    try:
        return plain._roi_align.__wrapped__(x, rois, scale, rows, columns, samples, half)
    finally:
        plain._bilinear_interpolate = bilinear
