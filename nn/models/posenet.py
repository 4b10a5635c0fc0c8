"""PoseNet: keypoint heads on MobileNet v1, width 0.75, output stride 16.

Source: Papandreou et al. 2018, arXiv:1803.08225. The last two blocks have 384 channels, as the published memory
figures of multi_person_mobilenet_v1_075 imply (Pisarchyk and Lee 2020).
"""

from dataclasses import field

import cgraph as cg
from cgraph import Node
from nn.layer import Layer, Sample, Weights, initialise
from nn.layers.conv import Conv2d
from nn.mode import Mode
from nn.models.mobilenet_v1 import BLOCKS, body

WIDTH, KEYPOINTS, EDGES = 0.75, 17, 16
LAST = ((512, 1), (512, 1))


class PoseNet(Layer):
    """Images ``[n, 3, h, w]`` to maps at a sixteenth of the size.

    Result
        heatmap ``[n, 17, p, q]``, offset ``[n, 34, p, q]``, segments ``[n, 1, p, q]`` and displacements along the
        skeleton, forward then backward, ``[n, 64, p, q]``
    """

    image: tuple[int, int, int] = (3, 353, 257)
    parts: tuple[Layer, ...] = field(init=False)
    heatmap: Conv2d = field(init=False)
    offset: Conv2d = field(init=False)
    forward: Conv2d = field(init=False)
    backward: Conv2d = field(init=False)
    segments: Conv2d = field(init=False)

    def __post_init__(self) -> None:
        features = int(LAST[-1][0] * WIDTH)
        self.hold(parts=body(WIDTH, BLOCKS[:-2] + LAST))
        self.hold(heatmap=Conv2d(features, KEYPOINTS, 1), offset=Conv2d(features, 2 * KEYPOINTS, 1))
        self.hold(forward=Conv2d(features, 2 * EDGES, 1), backward=Conv2d(features, 2 * EDGES, 1))
        self.hold(segments=Conv2d(features, 1, 1))

    @property
    def samples(self) -> tuple[Sample, ...]:
        return (Sample(self.image),)

    def build(self, *xs: Node, mode: Mode) -> tuple[Node, ...]:
        (x,) = xs
        for part in self.parts:
            x = part(x, mode=mode)
        heads = (self.heatmap, self.offset, self.forward, self.backward, self.segments)
        heatmap, offset, forward, backward, segments = (head(x, mode=mode) for head in heads)
        return heatmap, offset, segments, cg.concat([forward, backward], axis=1)


def posenet(weights: Weights = 0) -> PoseNet:
    """Return PoseNet; `weights` as for `initialise`."""
    return initialise(PoseNet(), weights)
