"""Published networks, one file each. Every function takes `weights`: a seed, ``"zeros"``, or None for none."""

from nn.models.blazeface import BlazeFace, blazeface
from nn.models.decoder import Decoder, DecoderBlock, gpt, llama
from nn.models.deeplab_v3 import DeepLabV3, deeplab_v3
from nn.models.densenet import DenseNet, densenet121, densenet201
from nn.models.inception_v3 import InceptionV3, inception_v3
from nn.models.lenet import lenet
from nn.models.lstm_text import lstm_text
from nn.models.mlp import mlp
from nn.models.mobilenet_v1 import MobileNetV1, mobilenet_v1
from nn.models.mobilenet_v2 import MobileNetV2, mobilenet_v2
from nn.models.posenet import PoseNet, posenet
from nn.models.resnet import (
    ResNet,
    resnet18,
    resnet20,
    resnet34,
    resnet50,
    resnet56,
    resnet101,
    resnet152,
)
from nn.models.squeezenet import squeezenet1_0, squeezenet1_1
from nn.models.steps import usage_records
from nn.models.vgg16 import vgg16

__all__ = [
    "BlazeFace",
    "Decoder",
    "DecoderBlock",
    "DeepLabV3",
    "DenseNet",
    "InceptionV3",
    "MobileNetV1",
    "MobileNetV2",
    "PoseNet",
    "ResNet",
    "blazeface",
    "deeplab_v3",
    "densenet121",
    "densenet201",
    "gpt",
    "inception_v3",
    "lenet",
    "llama",
    "lstm_text",
    "mlp",
    "mobilenet_v1",
    "mobilenet_v2",
    "posenet",
    "resnet101",
    "resnet152",
    "resnet18",
    "resnet20",
    "resnet34",
    "resnet50",
    "resnet56",
    "squeezenet1_0",
    "squeezenet1_1",
    "usage_records",
    "vgg16",
]


def __dir__() -> list[str]:
    return __all__
