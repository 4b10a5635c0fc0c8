"""Layers, one file for each family.

The neurons of Owl whose names differ here: LinearNoBias is ``Linear(use_bias=False)``, DilatedConv a Conv with
`dilation`, GlobalMaxPool1D and 2D one GlobalMaxPool, UpSampling2D an UpSampling, Padding2D a Padding, Normalisation a
BatchNorm; the others of its 44 neurons have the same names.
"""

from nn.layers.attention import MultiHeadAttention
from nn.layers.block import ConvNorm
from nn.layers.container import Branches, Residual, Sequential
from nn.layers.conv import Conv1d, Conv2d, Conv3d, TransposeConv1d, TransposeConv2d, TransposeConv3d
from nn.layers.embedding import Embedding
from nn.layers.function import Activation, Lambda, LambdaArray
from nn.layers.linear import FullyConnected, Linear, SwiGLU
from nn.layers.merge import Add, Average, Concatenate, Dot, Max, Mul
from nn.layers.noise import AlphaDropout, Dropout, GaussianDropout, GaussianNoise
from nn.layers.norm import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from nn.layers.pool import (
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    GlobalAvgPool,
    GlobalMaxPool,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
    Padding,
    UpSampling,
)
from nn.layers.recurrent import GRU, LSTM, Bidirectional, Recurrent
from nn.layers.shape import Flatten, Input, Reshape, Slice

__all__ = [
    "GRU",
    "LSTM",
    "Activation",
    "Add",
    "AlphaDropout",
    "Average",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "BatchNorm",
    "Bidirectional",
    "Branches",
    "Concatenate",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvNorm",
    "Dot",
    "Dropout",
    "Embedding",
    "Flatten",
    "FullyConnected",
    "GaussianDropout",
    "GaussianNoise",
    "GlobalAvgPool",
    "GlobalMaxPool",
    "GroupNorm",
    "Input",
    "InstanceNorm",
    "Lambda",
    "LambdaArray",
    "LayerNorm",
    "Linear",
    "Max",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "Mul",
    "MultiHeadAttention",
    "Padding",
    "RMSNorm",
    "Recurrent",
    "Reshape",
    "Residual",
    "Sequential",
    "Slice",
    "SwiGLU",
    "TransposeConv1d",
    "TransposeConv2d",
    "TransposeConv3d",
    "UpSampling",
]


def __dir__() -> list[str]:
    return __all__
