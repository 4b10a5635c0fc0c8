"""Mask R-CNN: detection of boxes, classes and masks; training; and a small network that ships trained.

This package is the library: networks, losses and detections. `tools` has data sets, synthetic images, films, drawing.
"""

from nn.models.mask_rcnn.config import Config, matterport_config, torchvision_config
from nn.models.mask_rcnn.losses import Training
from nn.models.mask_rcnn.names import matterport_arrays, torchvision_arrays
from nn.models.mask_rcnn.network import MaskRCNN
from nn.models.mask_rcnn.pretrained_configs import adopt, from_file, mask_rcnn, mask_rcnn_matterport, mask_rcnn_owl

__all__ = [
    "Config",
    "MaskRCNN",
    "Training",
    "adopt",
    "from_file",
    "mask_rcnn",
    "mask_rcnn_matterport",
    "mask_rcnn_owl",
    "matterport_arrays",
    "matterport_config",
    "torchvision_arrays",
    "torchvision_config",
]
