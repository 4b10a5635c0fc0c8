"""Lower bounds of RAM: a minimum cut is the least over all orders, as a search by hand confirms; rows are counted."""

from itertools import product

import numpy as np
import pytest

import cgraph as cg
from benchmarks.micro_networks import Published
from benchmarks.ram_bounds import (
    Cut,
    Layer,
    Step,
    alive_before,
    bound,
    layers_of,
    needed,
    row_steps,
    rows_read,
    steps_of,
    whole_steps,
)


def by_hand(steps: list[Step], at: int) -> int:
    """The least bytes that are done and yet to be read, over all sets of steps that may be done before `at`."""
    least = []
    for done in product((False, True), repeat=len(steps)):
        follows = all(done[x] for step, is_done in zip(steps, done) if is_done for x in step.reads)
        if not follows or done[at] or not all(done[x] for x in steps[at].reads):
            continue
        pending = {x for step, is_done in zip(steps, done) if not is_done for x in step.reads}
        least.append(sum(step.nbytes for i, step in enumerate(steps) if done[i] and i in pending))
    return min(least)


@pytest.mark.parametrize("seed", range(20))
def test_a_minimum_cut_is_the_least_over_all_sets_of_steps(seed):
    rng = np.random.default_rng(seed)
    steps = []
    for i in range(9):
        reads = rng.choice(i, min(i, int(rng.integers(1, 4))), replace=False) if i else []
        steps.append(Step("x", int(rng.integers(1, 50)), tuple(int(x) for x in reads)))
    for at in range(len(steps)):
        assert alive_before(steps, at) == by_hand(steps, at)


def test_a_flow_is_limited_by_the_narrowest_edges():
    cut = Cut(4)
    for start, end, capacity in ((0, 2, 5), (0, 3, 4), (2, 3, 9), (2, 1, 2), (3, 1, 6)):
        cut.add(start, end, capacity)
    assert cut.maximum() == 8


def test_a_result_that_may_overwrite_an_operand_counts_once():
    steps = [Step("a", 10, ()), Step("b", 8, (0,), shared=10, room=3), Step("c", 30, (1,))]
    assert [needed(steps, at) for at in range(3)] == [10, 13, 38]
    assert bound(steps, range(3)) == (38, "c")


def test_the_bound_of_a_plans_steps_is_not_above_the_plan():
    x = cg.Var((64,), name="x")
    wide = cg.concat([x * 2, x * 3, x * 4], 0)
    f = cg.compile([cg.sum(cg.sort(wide)), cg.sort(x + 1)], [x])
    steps = steps_of(f.compiled.layout)
    assert len(steps) == len(f.compiled.layout.steps)
    assert 0 < bound(steps, range(len(steps)))[0] <= f.compiled.lower_bound


def test_layers_and_their_rows():
    """Four rows of a window of three and stride two, with zeros above only if the rows are odd."""
    layers = layers_of(Published(8, 4, ((1, 4, 1, 3), (6, 4, 1, 3)), 0, 2, 1.0, 1.0))
    kinds = [(x.kind, x.size, x.channels) for x in layers]
    assert kinds[:4] == [("image", 8, 3), ("conv", 4, 4), ("depthwise", 4, 4), ("conv", 4, 4)]
    assert kinds[4:] == [("sum", 4, 4), ("conv", 4, 24), ("depthwise", 4, 24), ("conv", 4, 4), ("sum", 4, 4)]
    assert layers[4].reads == (3, 1) and layers[8].reads == (7, 4)
    assert [list(rows_read(layers[1], 8, row)) for row in (0, 3)] == [[0, 1, 2], [6, 7]]
    assert [list(rows_read(layers[2], 4, row)) for row in (0, 1, 3)] == [[0, 1], [0, 1, 2], [2, 3]]
    assert [list(rows_read(Layer("conv", 5, 1, (0,), 3, 2), 9, row)) for row in (0, 4)] == [[0, 1], [7, 8]]
    assert bound(whole_steps(layers), range(1, 9))[0] == 4 * 4 * (24 + 4 + 4)
    steps, some = row_steps(layers, 24)
    assert len(steps) == 8 + 8 * 4 and steps[0].nbytes == 24 and all(steps[i].name != "image 0" for i in some)
