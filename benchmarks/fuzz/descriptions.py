"""Darknet networks: descriptions of every kind of layer, and the weights of one."""

import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random

import numpy as np

from benchmarks.fuzz.mutate import TEXTS, changed_list, mutated, number

SAMPLES = (
    """[net]
height=8
width=8
channels=3

[convolutional]
batch_normalize=1
filters=4
size=3
stride=1
pad=1
activation=leaky

[maxpool]
size=2
stride=1

[route]
layers=-1,-2
[route]
layers=-2
groups=2
group_id=1
[upsample]
stride=2
[convolutional]
filters=12
size=1
activation=mish
[yolo]
mask=0,1
num=2
classes=1
""",
    """[net]
height=6
width=6
channels=4
[local]
filters=4
size=3
pad=1
[shortcut]
from=-1
activation=swish
[reorg]
stride=2
[batchnorm]
[crop]
crop_height=2
crop_width=2
[avgpool]
[dropout]
[connected]
output=8
activation=relu
[softmax]
groups=2
temperature=1.5
[cost]
""",
    """[net]
inputs=5
time_steps=3
[rnn]
hidden=4
output=6
[gru]
output=4
[connected]
output=30
[detection]
side=1
classes=10
coords=4
num=4
""",
    """[net]
height=4
width=4
channels=7
[region]
classes=2
num=1
coords=4
softmax=1
[activation]
activation=logistic
""",
)
KINDS = "convolutional maxpool avgpool route shortcut upsample reorg softmax crop dropout activation batchnorm local"
KINDS += " rnn gru connected yolo region detection cost net nonsense"
NAMES = "height width channels inputs time_steps filters size stride pad padding groups group_id dilation layers"
NAMES += (
    " from output hidden classes num coords mask activation temperature extra reverse side softmax scale scale_x_y tree"
)
NAMES += " batch_normalize"


def samples() -> Sequence[bytes]:
    return [text.encode() for text in SAMPLES]


def change(whole: bytes, rng: Random, samples: Sequence[bytes]) -> bytes:
    """Return changed lines and numbers in them; a layer from another network."""
    lines = whole.decode().splitlines()
    others = [line for sample in samples for line in sample.decode().splitlines()]

    def random_line() -> str:
        value = rng.choice(
            [str(number(rng)), str(rng.randint(1, 9)), f"{number(rng)},{number(rng)}", rng.choice(TEXTS)]
        )
        option = f"{rng.choice(NAMES.split())}={value}"
        return rng.choice([option, option, f"[{rng.choice(KINDS.split())}]", rng.choice(others), rng.choice(TEXTS)])

    for _ in range(rng.randint(1, 5)):
        at = rng.randrange(len(lines)) if lines else 0
        if rng.random() < 0.5 and lines and "=" in lines[at]:
            lines[at] = f"{lines[at].partition('=')[0]}={random_line().partition('=')[2] or number(rng)}"
        else:
            lines = changed_list(lines, rng, random_line)
    return "\n".join(lines).encode("utf-8", "replace")


@cache
def weights_description() -> Path:
    """Return a file with the first network, for as long as this process lives."""
    folder = tempfile.mkdtemp()
    path = Path(folder) / "net.cfg"
    path.write_text(SAMPLES[0])
    return path


def weights_samples() -> Sequence[bytes]:
    """Return the weights of the first network, under headers of several versions."""
    count = 4 * 4 + 4 * 3 * 9 + 12 + 12 * 2
    values = np.arange(count, dtype="<f4").tobytes()
    return [
        np.array([0, 2, 0, 0, 0], "<i4").tobytes() + values,
        np.array([0, 1, 0, 0], "<i4").tobytes() + values,
        mutated(values, Random(0)),
    ]
