"""8-bit networks that others publish for micro-controllers, with random filters and scales, as files of TFLite.

Sources: MobileNet v2 (Sandler et al. 2018, arXiv:1801.04381) of width 0.35 and ProxylessNAS for mobiles (Cai et al.
2019, arXiv:1812.00332) of width 0.3, whose last convolution is as narrow (mit-han-lab/mcunet, model zoo); the layers of
MCUNet's networks are those that msf-CNN lists (TinyPART/msf-CNN, analysis_optimization.py).
"""

import numpy as np

from cgraph.record import Record
from nn.models.mobilenet_v2 import GROUPS, LAST, STEM, channels
from tests.support.tflite_byte_cases import Quantised

RELU6, SAME, VALID = 3, 0, 1
WIDE, NARROW = {"scale": 6 / 255, "zero": -128}, {"scale": 8 / 255, "zero": 0}
Block = tuple[int, int, int, int]
"""Expansion, result channels, stride, window."""


class Published(Record):
    """A network of inverted residuals.

    Fields
        size: rows and columns of the image
        stem: channels of the first convolution
        last: channels of the last 1×1 convolution; 0 without one
        macs, weights: millions of products and of weights that its authors state
    """

    size: int
    stem: int
    blocks: tuple[Block, ...]
    last: int
    classes: int
    macs: float
    weights: float


def scaled(blocks: list[Block], width: float) -> tuple[Block, ...]:
    return tuple((t, channels(k, width), s, w) for t, k, s, w in blocks)


MOBILE = [(t, k, 1 if i else s, 3) for t, k, n, s in GROUPS for i in range(n)]
PROXYLESS = [
    (1, 16, 1, 3),
    (3, 32, 2, 5), (3, 32, 1, 3),
    (3, 40, 2, 7), (3, 40, 1, 3), (3, 40, 1, 5), (3, 40, 1, 5),
    (6, 80, 2, 7), (3, 80, 1, 5), (3, 80, 1, 5), (3, 80, 1, 5),
    (6, 96, 1, 5), (3, 96, 1, 5), (3, 96, 1, 5), (3, 96, 1, 5),
    (6, 192, 2, 7), (6, 192, 1, 7), (3, 192, 1, 7), (3, 192, 1, 7),
    (6, 320, 1, 7),
]  # fmt: skip
VWW = (
    (1, 8, 1, 3),
    (6, 16, 2, 3), (3, 16, 1, 3), (3, 16, 1, 3),
    (3, 24, 2, 7), (6, 24, 1, 3), (5, 24, 1, 5),
    (6, 40, 2, 7), (6, 40, 1, 7), (6, 48, 1, 3), (4, 48, 1, 3),
    (5, 96, 2, 5), (5, 96, 1, 3), (4, 96, 1, 3), (3, 160, 1, 7),
)  # fmt: skip
LARGE = (
    (1, 8, 1, 3),
    (3, 16, 2, 7), (5, 16, 1, 3), (5, 16, 1, 7), (4, 16, 1, 5),
    (5, 24, 2, 5), (5, 24, 1, 5), (5, 24, 1, 5),
    (5, 40, 2, 3), (6, 40, 1, 7), (4, 40, 1, 5), (5, 48, 1, 5), (5, 48, 1, 7), (5, 48, 1, 3),
    (6, 96, 2, 3), (5, 96, 1, 7), (4, 96, 1, 3), (5, 160, 1, 7),
)  # fmt: skip
PUBLISHED = {
    "mbv2_w035": Published(144, channels(STEM, 0.35), scaled(MOBILE, 0.35), channels(LAST, 0.35), 1000, 23.5, 0.75),
    "proxyless_w03": Published(176, channels(STEM, 0.3), scaled(PROXYLESS, 0.3), channels(LAST, 0.3), 1000, 38.3, 0.75),
    "mcunet_vww1": Published(80, 16, VWW, 0, 2, 11.6, 0.43),
    "mcunet_in3": Published(176, 16, LARGE, 0, 1000, 81.8, 0.74),
}


class Writer:
    """A file that is being written. Changes: layers are added; `macs` and `weights` are counted."""

    def __init__(self, size: int) -> None:
        self.net = Quantised("int8", np.random.default_rng(0))
        self.x = self.net.bytes_in((1, size, size, 3), scale=1 / 128, zero=0)
        self.size, self.channels, self.macs, self.weights = size, 3, 0, 0

    def filters(self, shape: tuple[int, ...], axis: int) -> tuple[int, int]:
        """Return filters of random bytes with a scale for each, which preserve the range of images, and biases."""
        net, count, taps = self.net, shape[axis], int(np.prod(shape)) // shape[axis]
        values = net.rng.integers(-127, 128, shape).astype("int8")
        scales = net.rng.uniform(1, 2, count) * np.sqrt(6 / taps) / 127
        biases = net.rng.integers(-999, 1000, count).astype("int32")
        self.weights += values.size
        self.macs += values.size * self.size**2
        return net.constant(values, scale=scales, zero=(0, axis)), net.constant(biases, scale=1e-4)

    def conv(self, count: int, window: int = 1, stride: int = 1, deep: bool = False, linear: bool = False) -> None:
        """Add a convolution with padding, and relu6 unless `linear`; `deep`: depthwise."""
        self.size = -(-self.size // stride)
        shape = (1, window, window, count) if deep else (count, window, window, self.channels)
        operands = [self.x, *self.filters(shape, 3 if deep else 0)]
        options = {"stride_w": stride, "stride_h": stride, "padding": SAME, "activation": 0 if linear else RELU6}
        kind = "DEPTHWISE_CONV_2D" if deep else "CONV_2D"
        result = self.net.made(**(NARROW if linear else WIDE))
        self.x = self.net.op(kind, operands, result, **options, **({"multiplier": 1} if deep else {}))
        self.channels = count

    def block(self, expansion: int, count: int, stride: int, window: int) -> None:
        """Add an inverted residual."""
        before, wide, adds = self.x, self.channels * expansion, stride == 1 and count == self.channels
        if expansion > 1:
            self.conv(wide)
        self.conv(wide, window, stride, deep=True)
        self.conv(count, linear=True)
        if adds:
            self.x = self.net.op("ADD", [self.x, before], self.net.made(**NARROW), activation=0)

    def scores(self, classes: int, wide: bool) -> int:
        """Add the mean of the pixels and a matrix product."""
        options = {"stride_w": 1, "stride_h": 1, "window_w": self.size, "window_h": self.size, "padding": VALID}
        x = self.net.op("AVERAGE_POOL_2D", [self.x], self.net.made(**(WIDE if wide else NARROW)), **options)
        self.size = 1
        return self.net.op("FULLY_CONNECTED", [x, *self.filters((classes, self.channels), 0)], self.net.made(8.0))


def written(name: str) -> Writer:
    """Return the writer of a network of `PUBLISHED`, with all layers but the scores'."""
    published = PUBLISHED[name]
    writer = Writer(published.size)
    writer.conv(published.stem, 3, 2)
    for block in published.blocks:
        writer.block(*block)
    if published.last:
        writer.conv(published.last)
    return writer


def micro_network(name: str) -> bytes:
    """Return a network of `PUBLISHED` as a file."""
    writer = written(name)
    return writer.net.bytes(writer.scores(PUBLISHED[name].classes, bool(PUBLISHED[name].last)))


def main() -> None:
    for name, published in PUBLISHED.items():
        writer = written(name)
        writer.scores(published.classes, bool(published.last))
        print(f"{name}: {writer.macs / 1e6:.1f} million products ({published.macs}), ", end="")
        print(f"{writer.weights / 1e6:.2f} million weights ({published.weights})")


if __name__ == "__main__":
    main()
