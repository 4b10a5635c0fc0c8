"""The standard block of convolutional networks: convolution, batch norm, activation."""

from dataclasses import field

from cgraph import Node
from nn.init import HE_NORMAL
from nn.layers.conv import Conv2d, WindowLayer
from nn.layers.function import Function, activation
from nn.layers.norm import BatchNorm
from nn.mode import Mode


class ConvNorm(WindowLayer):
    """A Conv2d without bias, BatchNorm, and an activation.

    Fields
        inputs … groups: as in Conv2d
        function: the activation; ``"none"`` for none
        eps, scaled, frozen: as in BatchNorm
    """

    function: Function = "relu"
    eps: float = 1e-5
    scaled: bool = True
    frozen: bool = False
    conv: Conv2d = field(init=False)
    norm: BatchNorm = field(init=False)

    def __post_init__(self) -> None:
        sizes = (self.inputs, self.outputs, self.window, self.stride, self.pad, self.dilation, self.groups)
        self.hold(conv=Conv2d(*sizes, use_bias=False, start=HE_NORMAL))
        self.hold(norm=BatchNorm(self.outputs, self.eps, scaled=self.scaled, frozen=self.frozen))

    def build(self, *xs: Node, mode: Mode) -> Node:
        return activation(self.function)(self.norm(self.conv(*xs, mode=mode), mode=mode))
