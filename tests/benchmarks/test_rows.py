"""Elements alive in bands of a row, counted as the paper counts."""

import pytest

from benchmarks.restructuring import steps_of
from benchmarks.rows import least, row
from cgraph.budget.patches.image_steps import ImageStep
from cgraph.budget.patches.tile_peak import as_written
from cgraph.kernels.views.window import Window


def test_a_chain_needs_its_image_its_result_and_rings_of_a_few_rows():
    image, row = ImageStep("image", (1, 20, 10), splits=False), 40
    wide = [ImageStep("conv2d", (4, 20, 10), (i,), Window((3, 3), pad=(1, 1, 1, 1))) for i in range(2)]
    steps = [image, *wide, ImageStep("conv2d", (1, 20, 10), (2,), Window())]
    assert as_written(steps).peak == 2 * 20 * row
    rows_read = 3 + 1  # of the first value, and of the second
    assert rows_read * row <= least(steps, False) - 2 * image.size <= (rows_read + 2) * row  # two rows slide
    assert rows_read * row + 3 * 10 <= least(steps, True) - image.size <= (rows_read + 2) * row + 5 * 10


@pytest.mark.slow
def test_figures_of_a_network():
    assert [f"{x:.1f}" for x in row("squeezenet1_1")] == ["77.2", "82.1"]
    assert as_written(steps_of("squeezenet1_1")).peak == 982_144
