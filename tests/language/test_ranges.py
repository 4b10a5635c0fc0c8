"""Numbers that must lie in a range: both ends and what is just outside them, and every range of the sources is here."""

import math
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.budget.patches.tile_peak import check_patches
from cgraph.errors import ArgumentError, FormatError, InputError, PlanError, ShapeError
from cgraph.quantiser.quantise import Choices
from cgraph.system.byte_counts import byte_count
from nn.layers.noise import check_rate
from nn.models.mask_rcnn.tools.masks import unpack_runs

TINY, ABOVE = 5e-324, math.nextafter(1, 2)
KEY = np.zeros(2, np.uint32)
SHARE = ((0, TINY, 0.5, 1), (-1, -TINY, ABOVE, 2, math.nan, math.inf, -math.inf))  # both ends belong to it
BELOW_ONE = ((0, TINY, 0.5, math.nextafter(1, 0)), (-1, -TINY, 1, 2, math.nan))
INSIDE = ((TINY, 0.5, math.nextafter(1, 0)), (-1, 0, 1, 2, math.nan))
RANGES = {
    "cgraph/budget/patches/tile_peak.py alpha": (partial(check_patches, slices=(1, 1)), PlanError, SHARE),
    "cgraph/ops/random.py self.probability": (lambda p: cg.random_bernoulli(KEY, (2,), p), ShapeError, SHARE),
    "cgraph/ops/random.py rate": (lambda rate: cg.dropout(np.ones(3, "f4"), KEY, rate), ShapeError, BELOW_ONE),
    "cgraph/ops/random.py seed": (cg.random_key, ShapeError, ((0, 1, 2**64 - 1), (-1, 2**64, -(2**64)))),
    "cgraph/quantiser/quantise.py self.agreement": (lambda x: Choices(agreement=x), InputError, SHARE),
    "cgraph/system/byte_counts.py count": (byte_count, ArgumentError, ((0, 1, 2**62 - 1), (-1, 2**62, -(2**62)))),
    "nn/layers/noise.py rate": (check_rate, ValueError, BELOW_ONE),
    "nn/losses.py self.smoothing": (lambda x: nn.losses.CrossEntropy(smoothing=x), InputError, SHARE),
    "nn/models/mask_rcnn/tools/masks.py bits": (unpack_runs, FormatError, (("0", "?", "1"), ("/", " ", "\x7f", "\0"))),
    "nn/optim/averaging.py self.decay": (lambda x: nn.optim.ExponentialAverage(decay=x), InputError, INSIDE),
    "nn/optim/plateau.py self.factor": (lambda x: nn.optim.Plateau(0.1, factor=x), InputError, INSIDE),
}
OF_FILES = {  # in the tests of their operators
    "cgraph/formats/onnx/operators/conv.py x.ndim",
    "cgraph/formats/onnx/operators/pointwise.py ratio",
}


RANGE = re.compile(r"if .*\bnot [\d.]+ <=? ([\w.]+) <=? [\d.]+")


def test_every_range_of_the_sources_is_listed():
    root = Path(__file__).parents[2]
    files = {p.relative_to(root).as_posix(): p for name in ("cgraph", "nn") for p in (root / name).rglob("*.py")}
    found = {f"{name} {x}" for name, path in files.items() for x in RANGE.findall(path.read_text())}
    assert found == {*RANGES, *OF_FILES}


@pytest.mark.parametrize("name", RANGES)
def test_both_ends_of_a_range(name):
    make, error, (inside, outside) = RANGES[name]
    for x in inside:
        make(x)
    for x in outside:
        with pytest.raises(error):
            make(x)
