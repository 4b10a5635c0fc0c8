"""Non-maximum suppression in blocks of threads: what stays is what one thread selects, with more boxes than threads."""

import numpy as np
import pytest

from cgraph.kernels.boxes.gpu_calls import suppress_calls
from cgraph.kernels.team.gpu_signature import THREADS
from tests.kernels.test_boxes import CASES, check, check_pictures, selected
from tests.support.gpu import BLOCKS, run_on_gpu


def in_blocks(calls):
    """Run calls with a block for each task; all but the kernel is as it was."""
    blocks = suppress_calls(calls)
    assert [(c.args, c.tasks, c.kernel.params) for c in blocks] == [(c.args, c.tasks, c.kernel.params) for c in calls]
    assert all(call.kernel.is_block for call in blocks)
    run_on_gpu(blocks)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_stays(case):
    check(case, "f4", in_blocks, BLOCKS)


@pytest.mark.parametrize("grouped", [False, True])
def test_each_picture_has_its_own_boxes(grouped):
    check_pictures(grouped, in_blocks, BLOCKS)


def test_more_boxes_than_threads_stay_and_each_hides_its_copy():
    """The copies follow, so that the thread of every selected box finds one of them, the last selected one too."""
    n = THREADS + 3
    one = np.stack([np.arange(n) * 2, np.zeros(n), np.arange(n) * 2 + 1, np.ones(n)], 1).astype("f4")
    boxes, scores = np.concatenate([one, one]), np.ones(2 * n, "f4")
    places, counts = selected(boxes, scores, np.arange(2 * n), None, 2 * n, (0.5, 0.0), in_blocks, BLOCKS)
    assert counts == n and places.tolist() == [*range(n), *[-1] * n]
