"""Conversion of torchvision's and matterport's weight files to the names and shapes of the networks here.

Each function takes the arrays of a file by name and returns arrays by path, for `nn.set_values`.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from cgraph import FormatError
from nn.models.mask_rcnn.backbone import ResNetTrunk
from nn.models.mask_rcnn.heads import BoxHead, MaskHead
from nn.models.mask_rcnn.network import MaskRCNN
from nn.models.torch_names import Arrays, conv_norm, trunk_arrays

KINDS = ("weight", "bias")
YXHW = [1, 0, 3, 2]
"""matterport's coded boxes are y, x, h, w."""


class ArrayReader(Mapping[str, np.ndarray]):
    """The arrays of a file; a missing one raises FormatError, not KeyError. Changes: `read`, the names so far."""

    def __init__(self, arrays: Mapping[str, np.ndarray], what: str) -> None:
        self.arrays, self.what, self.read = arrays, what, set[str]()

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.arrays:
            raise FormatError(f"the file has no {name}, which {self.what} has. Use the file of this network.")
        self.read.add(name)
        return self.arrays[name]

    def __contains__(self, name: object) -> bool:
        return name in self.arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    def check_all_read(self, optional: str) -> None:
        """Raise FormatError when an array was not read whose name does not end with `optional`."""
        left = sorted(name for name in self.arrays.keys() - self.read if not name.endswith(optional))
        if left:
            raise FormatError(
                f"the file has {', '.join(left[:3])}, which {self.what} has not. Use the file of this network."
            )


def torchvision_arrays(arrays: Arrays, model: MaskRCNN) -> dict[str, np.ndarray]:
    """Return arrays of torchvision's ``maskrcnn_resnet50_fpn``, with old or new names, or of its second version.

    Raises
        FormatError: the file lacks an array of this network, or has one that the network does not have
    """
    asked = ArrayReader(arrays, "torchvision's network of this version and depth")
    trunk, box, mask = model.trunk, model.box, model.mask
    assert isinstance(trunk, ResNetTrunk) and isinstance(box, BoxHead) and isinstance(mask, MaskHead)
    by_path = add_prefix("trunk.", trunk_arrays(asked, trunk.groups, "backbone.body."))
    for i in range(len(model.lateral)):
        for here, there in ((f"lateral.{i}", f"inner_blocks.{i}"), (f"smooth.{i}", f"layer_blocks.{i}")):
            by_path |= convolution(asked, here, f"backbone.fpn.{there}")
    for i in range(len(model.rpn.conv)):  # type: ignore[attr-defined]
        by_path |= convolution(asked, f"rpn.conv.{i}", f"rpn.head.conv.{i}", "rpn.head.conv")
    for kind in KINDS:
        numbers = asked[f"rpn.head.cls_logits.{kind}"], asked[f"rpn.head.bbox_pred.{kind}"]
        by_path[f"rpn.numbers.{kind}"] = np.concatenate(numbers)
    heads = "roi_heads.box_head"
    for i in range(len(box.conv)):
        by_path |= convolution(asked, f"box.conv.{i}", f"{heads}.{i}")
    names = [f"{heads}.{len(box.conv) + 1}"] if box.conv else [f"{heads}.fc6", f"{heads}.fc7"]
    for i, name in enumerate(names):
        by_path |= matrix(asked, f"box.full.{i}.linear", name)
    by_path |= matrix(asked, "box.scores", "roi_heads.box_predictor.cls_score")
    by_path |= matrix(asked, "box.deltas", "roi_heads.box_predictor.bbox_pred")
    for i in range(len(mask.conv)):
        there = f"roi_heads.mask_head.{i}"
        by_path |= convolution(asked, f"mask.conv.{i}", there, f"roi_heads.mask_head.mask_fcn{i + 1}")
    by_path |= plain(asked, "mask.enlarge", "roi_heads.mask_predictor.conv5_mask")
    by_path |= plain(asked, "mask.scores", "roi_heads.mask_predictor.mask_fcn_logits")
    asked.check_all_read("num_batches_tracked")
    return by_path


def add_prefix(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays with a prefix before their names."""
    return {prefix + name: x for name, x in arrays.items()}


def plain(arrays: Arrays, here: str, there: str) -> dict[str, np.ndarray]:
    """Return weight and bias unchanged."""
    return {f"{here}.{kind}": arrays[f"{there}.{kind}"] for kind in KINDS}


def matrix(arrays: Arrays, here: str, there: str) -> dict[str, np.ndarray]:
    """Return the arrays of a Linear, whose weight is transposed."""
    return {f"{here}.weight": arrays[f"{there}.weight"].T, f"{here}.bias": arrays[f"{there}.bias"]}


def convolution(arrays: Arrays, here: str, there: str, old: str | None = None) -> dict[str, np.ndarray]:
    """Return a convolution with a norm (``.0`` and ``.1``), with a bias (``.0``), or by its name in older files."""
    if f"{there}.1.running_mean" in arrays:
        return conv_norm(arrays, here, f"{there}.0", f"{there}.1")
    old = old or there
    return plain(arrays, here, old if f"{old}.weight" in arrays else f"{there}.0")


def matterport_arrays(layers: Mapping[str, Mapping[str, np.ndarray]], model: MaskRCNN) -> dict[str, np.ndarray]:
    """Return arrays of matterport's ``mask_rcnn_coco.h5``, from the weights of `cgraph.formats.keras_h5.read_keras`.

    Raises
        FormatError: the file lacks an array of this network
    """
    flat = {f"{layer}/{name}": x for layer, arrays in layers.items() for name, x in arrays.items()}
    asked = ArrayReader(flat, "matterport's network of this depth")
    trunk, mask = model.trunk, model.mask
    assert isinstance(trunk, ResNetTrunk) and isinstance(mask, MaskHead)
    by_path = keras_norm(asked, "trunk.stem", "conv1", "bn_conv1")
    for g, group in enumerate(trunk.groups):
        for b, block in enumerate(group):
            for part, branch in (("first", "2a"), ("second", "2b"), ("third", "2c"), ("shortcut", "1")):
                if part != "shortcut" or block.shortcut is not None:
                    name = f"{g + 2}{chr(ord('a') + b)}_branch{branch}"
                    by_path |= keras_norm(asked, f"trunk.groups.{g}.{b}.{part}", f"res{name}", f"bn{name}")
    for i in range(len(model.lateral)):
        by_path |= keras_conv(asked, f"lateral.{i}", f"fpn_c{i + 2}p{i + 2}")
        by_path |= keras_conv(asked, f"smooth.{i}", f"fpn_p{i + 2}")
    by_path |= keras_conv(asked, "rpn.conv.0", "rpn_model/rpn_conv_shared") | anchor_arrays(asked)
    for i in (0, 1):
        by_path |= full_arrays(asked, f"box.full.{i}", f"mrcnn_class_conv{i + 1}", f"mrcnn_class_bn{i + 1}")
    by_path |= {
        f"box.scores.{kind}": asked[f"mrcnn_class_logits/{name}"] for kind, name in zip(KINDS, ("kernel", "bias"))
    }
    for kind, name in zip(KINDS, ("kernel", "bias")):
        by_path[f"box.deltas.{kind}"] = reorder_boxes(asked[f"mrcnn_bbox_fc/{name}"])
    for i in range(len(mask.conv)):
        by_path |= keras_norm(asked, f"mask.conv.{i}", f"mrcnn_mask_conv{i + 1}", f"mrcnn_mask_bn{i + 1}")
    by_path["mask.enlarge.weight"] = asked["mrcnn_mask_deconv/kernel"].transpose(3, 2, 0, 1)
    by_path["mask.enlarge.bias"] = asked["mrcnn_mask_deconv/bias"]
    return by_path | keras_conv(asked, "mask.scores", "mrcnn_mask")


def anchor_arrays(arrays: Arrays) -> dict[str, np.ndarray]:
    """Return one logit for two: the object's minus the background's; and coded boxes as x, y, w, h."""
    kernel, bias = (arrays[f"rpn_model/rpn_class_raw/{name}"] for name in ("kernel", "bias"))
    deltas = arrays["rpn_model/rpn_bbox_pred/kernel"]
    numbers = np.concatenate([kernel[..., 1::2] - kernel[..., ::2], reorder_boxes(deltas)], -1)
    biases = bias[1::2] - bias[::2], reorder_boxes(arrays["rpn_model/rpn_bbox_pred/bias"])
    return {"rpn.numbers.weight": numbers.transpose(3, 2, 0, 1), "rpn.numbers.bias": np.concatenate(biases)}


def reorder_boxes(x: np.ndarray) -> np.ndarray:
    """Return coded boxes along the last axis as x, y, w, h instead of y, x, h, w."""
    return x.reshape(*x.shape[:-1], -1, 4)[..., YXHW].reshape(x.shape)


def keras_conv(arrays: Arrays, here: str, there: str) -> dict[str, np.ndarray]:
    """Return a convolution from ``[r, s, in, out]``, with its bias."""
    kernel = arrays[f"{there}/kernel"].transpose(3, 2, 0, 1)
    return {f"{here}.weight": kernel, f"{here}.bias": arrays[f"{there}/bias"]}


def keras_norm(arrays: Arrays, here: str, conv: str, norm: str) -> dict[str, np.ndarray]:
    """Return a convolution and its norm; the norm's mean absorbs the bias."""
    kernel = arrays[f"{conv}/kernel"].transpose(3, 2, 0, 1)
    return {f"{here}.conv.weight": kernel} | norm_arrays(arrays, f"{here}.norm", norm, arrays[f"{conv}/bias"])


def full_arrays(arrays: Arrays, here: str, conv: str, norm: str) -> dict[str, np.ndarray]:
    """Return a convolution over a whole feature grid as the matrix of a Linear over channels, rows and columns."""
    kernel = arrays[f"{conv}/kernel"].transpose(2, 0, 1, 3)
    weight = {
        f"{here}.linear.weight": kernel.reshape(-1, kernel.shape[3]),
        f"{here}.linear.bias": arrays[f"{conv}/bias"],
    }
    return weight | norm_arrays(arrays, f"{here}.normal", norm, np.float32(0))


def norm_arrays(arrays: Arrays, here: str, there: str, bias: np.ndarray | np.floating) -> dict[str, np.ndarray]:
    """Return the arrays of a norm, minus a bias from its mean."""
    by_part = {"scale": arrays[f"{there}/gamma"], "shift": arrays[f"{there}/beta"]}
    by_part |= {"mean": arrays[f"{there}/moving_mean"] - bias, "variance": arrays[f"{there}/moving_variance"]}
    return {f"{here}.{name}": x for name, x in by_part.items()}
