"""What boxes see, and the gradient for the images, in blocks of threads: the bits of a thread for each box."""

import numpy as np
import pytest

from cgraph.kernels.kernel import STOP, Pointer
from cgraph.kernels.regions.calls import SampleGrid, align_calls, spread_calls
from cgraph.ops.regions import RoiAlign, RoiAlignGrad
from tests.kernels.test_regions import GRIDS, SCALES, drawn, views
from tests.support.gpu import BLOCKS, GPU, run_on_gpu
from tests.support.kernels import STOP_WORD, view_of
from tests.support.tolerance import assert_near


def in_both(calls, shape):
    """What block kernels and those of one thread give, which are the same bits."""
    found = [np.full(shape, np.nan, "f4") for _ in range(2)]
    for target, out in zip((BLOCKS, GPU), found):
        (call,) = calls(target, view_of(out))
        assert call.kernel.is_block == target.has_blocks
        run_on_gpu([call])
    assert found[0].tobytes() == found[1].tobytes()
    return found[0]


@pytest.mark.parametrize(("kind", "samples"), GRIDS)
def test_cells(kind, samples):
    boxes, batch, level, images = drawn(11, 12)
    grid, given = SampleGrid(kind, samples, SCALES), views(boxes, batch, level)
    with np.errstate(invalid="ignore"):
        want = RoiAlign((3, 4), grid).meaning(boxes, batch, level, *images)
    got = in_both(lambda target, out: align_calls(target, out, given, [view_of(x) for x in images], grid), want.shape)
    assert_near(got, want, "float32 products")


@pytest.mark.parametrize(("kind", "samples"), GRIDS)
def test_gradients(kind, samples):
    boxes, batch, level, images = drawn(9, 12)
    g = np.random.default_rng(3).standard_normal((12, 9, 3, 4)).astype("f4")
    grid, given, numbers = SampleGrid(kind, samples, SCALES), views(boxes, batch, level), boxes.copy()
    numbers[3] = 1  # what a box of no number adds is zero; of the others each box adds its own
    for which, x in enumerate(images):
        got = in_both(lambda target, out: spread_calls(target, out, given, view_of(g), which, grid), x.shape)  # noqa: B023
        there = level != which
        there[3] = True
        want = RoiAlignGrad(which, (2, *x.shape[2:]), grid).meaning(numbers, batch, np.where(there, -1, which), g)
        assert_near(got, want, "float32 products and a residual")


def test_an_image_that_is_not_there_is_said():
    boxes, batch, level, images = drawn(3, 4)
    batch[2], out = 2, np.zeros((4, 3, 1, 1), "f4")
    STOP_WORD[:] = 0
    sources = [view_of(x) for x in images]
    run_on_gpu(
        align_calls(
            BLOCKS, view_of(out), views(boxes, batch, level), sources, SampleGrid("cells", 2, SCALES), Pointer(STOP)
        )
    )
    assert STOP_WORD.any() and np.isfinite(out[2]).all()
    STOP_WORD[:] = 0
