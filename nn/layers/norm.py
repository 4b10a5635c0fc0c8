"""Normalisation: of each channel over the batch, and of each sample over its own elements."""

from dataclasses import field

import numpy as np

import cgraph as cg
from cgraph import Node
from nn.init import ONES, ZEROS
from nn.layer import Layer, Parameter
from nn.mode import Mode
from nn.torch_names import TorchNames

TORCH = {"scale": "weight", "shift": "bias", "mean": "running_mean", "variance": "running_var"}


class Norm(Layer):
    """Base of all norms, with PyTorch's names of their Parameters."""

    def from_torch(self, names: TorchNames) -> dict[str, np.ndarray]:
        return {name: names[TORCH[name]] for name, x in vars(self).items() if isinstance(x, Parameter)}


class BatchNorm(Norm):
    """Normalises each channel to mean 0 and variance 1, then scales and shifts it.

    Training uses the mean and variance of the batch, through which gradients flow, and an update edge moves the running
    statistics toward them. Inference uses the running statistics.

    Operands
        x: ``[n, channels, ...]``
    Fields
        eps: added to the variance
        decay: weight of the old running statistics in a training step
        scaled: has a trained scale
        frozen: uses the running statistics and trains nothing, in training too
    Source
        Ioffe and Szegedy 2015, arXiv:1502.03167
    """

    channels: int
    eps: float = 1e-5
    decay: float = 0.9
    scaled: bool = True
    frozen: bool = False
    scale: Parameter | None = field(init=False)
    shift: Parameter = field(init=False)
    mean: Parameter = field(init=False)
    variance: Parameter = field(init=False)

    def __post_init__(self) -> None:
        shape, trained = (self.channels,), not self.frozen
        self.hold(
            scale=Parameter(shape, ONES, trained) if self.scaled else None, shift=Parameter(shape, ZEROS, trained)
        )
        self.hold(mean=Parameter(shape, ZEROS, trained=False), variance=Parameter(shape, ONES, trained=False))

    def build(self, *xs: Node, mode: Mode) -> Node:
        (x,) = xs
        scale = self.scale if self.scale is not None else cg.ones(self.channels)
        if self.frozen or not mode.training:
            return cg.batch_norm(x, scale, self.shift, self.mean, self.variance, self.eps)
        y, mean, variance = cg.batch_norm_training(x, scale, self.shift, self.eps)
        self._follow(mode, mean, variance, x.size // self.channels)
        return y

    def _follow(self, mode: Mode, mean: Node, variance: Node, count: int) -> None:
        """Update the running statistics; the variance of `count` samples is biased by ``(count - 1) / count``."""
        unbiased = variance * (count / max(count - 1, 1))
        for running, batch_statistic in ((self.mean, mean), (self.variance, unbiased)):
            mode.update(running, self.decay * mode.latest(running) + (1 - self.decay) * batch_statistic)


class GroupNorm(Norm):
    """Normalises each group of channels of each sample to mean 0 and variance 1, then scales and shifts per channel.

    Operands
        x: ``[n, channels, ...]``
    Source
        Wu and He 2018, arXiv:1803.08494
    """

    groups: int
    channels: int
    eps: float = 1e-5
    scale: Parameter = field(init=False)
    shift: Parameter = field(init=False)

    def __post_init__(self) -> None:
        self.hold(scale=Parameter((self.channels,), ONES), shift=Parameter((self.channels,), ZEROS))

    def build(self, *xs: Node, mode: Mode) -> Node:
        return cg.group_norm(xs[0], self.scale, self.shift, self.groups, self.eps)


def InstanceNorm(channels: int, eps: float = 1e-5) -> GroupNorm:
    """Return a norm of each channel of each sample. Source: Ulyanov et al. 2016, arXiv:1607.08022."""
    return GroupNorm(channels, channels, eps)


class RMSNorm(Norm):
    """Divides the last axis by its root mean square, and scales. Source: Zhang and Sennrich 2019, arXiv:1910.07467."""

    features: int
    eps: float = 1e-5
    scale: Parameter = field(init=False)

    def __post_init__(self) -> None:
        self.hold(scale=Parameter((self.features,), ONES))

    def build(self, *xs: Node, mode: Mode) -> Node:
        return cg.rms_norm(xs[0], self.scale, self.eps)


class LayerNorm(Norm):
    """Normalises the last axis to mean 0 and variance 1, then scales and shifts. Source: Ba et al. 2016, 1607.06450."""

    features: int
    eps: float = 1e-5
    scale: Parameter = field(init=False)
    shift: Parameter = field(init=False)

    def __post_init__(self) -> None:
        self.hold(scale=Parameter((self.features,), ONES), shift=Parameter((self.features,), ZEROS))

    def build(self, *xs: Node, mode: Mode) -> Node:
        return cg.layer_norm(xs[0], self.scale, self.shift, self.eps)
