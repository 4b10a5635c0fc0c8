import pytest
from hypothesis import given, settings

import cgraph as cg
from cgraph.ir.bands import InPlaceJoin
from cgraph.memory.bounds import lower_bound
from cgraph.memory.permissions import aligned_sizes, permitted_lower_bound
from cgraph.memory.usage import StepValue, usage_of
from tests.support.graphs import graphs
from tests.support.planned import planned

WAYS = [(overwrite, join) for overwrite in (True, False) for join in (True, False)]


@settings(max_examples=80)
@given(drawn=graphs())
def test_no_use_of_the_permissions_needs_less(drawn):
    values = planned(*drawn.outputs).layout.values
    for alignment in (1, 64):
        bound = permitted_lower_bound(values, alignment)
        assert all(bound <= lower_bound(usage_of(values, alignment, *way).problem) for way in WAYS)


def test_without_permissions_it_is_the_largest_breadth():
    values = [StepValue(100, 0, "a", 2), StepValue(10, 1, "b", 3, lasting=True), StepValue(7, 2, "c", 3)]
    assert permitted_lower_bound(values, 64) == 128 + 64 + 64
    assert permitted_lower_bound(values, 1) == 117


@pytest.mark.parametrize(
    ("operand", "taken"),
    [
        (StepValue(64, 0, "x", 1), 64),
        (StepValue(64, 0, "x", 2), 0),  # read once more
        (StepValue(64, 0, "x", 1, lasting=True), 0),
        (StepValue(32, 0, "x", 1), 0),  # another size
        (StepValue(128, 0, "x", 1), 0),
    ],
    ids=["usable", "read later", "kept", "smaller", "larger"],
)
def test_only_a_permission_that_can_be_used_lowers_the_bound(operand, taken):
    """Whichever of two operands it is."""
    other = StepValue(256, 0, "y", 1)
    for values in ((operand, other), (other, operand)):
        i = values.index(operand)
        result = StepValue(64, 1, "z", 2, overwritable=(i,))
        assert permitted_lower_bound([*values, result], 1) == operand.nbytes + other.nbytes + 64 - taken
        both = StepValue(64, 1, "z", 2, overwritable=(0, 1))  # the other one has another size
        assert permitted_lower_bound([*values, both], 1) == operand.nbytes + other.nbytes + 64 - taken


def test_a_chain_of_overwriting_values_needs_one():
    x = cg.Var((64,))
    for _ in range(5):
        x = cg.sin(x)
    compiled = planned(x)
    assert (compiled.lower_bound, compiled.plain_lower_bound, compiled.nbytes) == (256, 512, 256)


def test_parts_need_no_bytes_beside_their_concat():
    compiled = planned(cg.concat([cg.sin(cg.Var((64,))), cg.exp(cg.Var((64,)))]))
    assert (compiled.lower_bound, compiled.plain_lower_bound, compiled.nbytes) == (512, 1024, 512)


@pytest.mark.parametrize("ahead", [0, 30, 64, 100, 200])
@pytest.mark.parametrize(("fork", "join"), [(100, 100), (100, 40), (40, 100)])
def test_a_join_over_its_fork_needs_the_bytes_of_both_in_their_places(ahead, fork, join):
    """The fork lies so many bytes behind where the join begins; further apart than both are long, nothing is shared."""
    values = [StepValue(fork, 0, "fork", 1), StepValue(join, 1, "join", 2, over=InPlaceJoin(0, ahead))]
    assert permitted_lower_bound(values, 1) == min(fork + join, max(join, ahead + fork))


def test_a_part_counts_once_however_many_results_hold_it():
    part = StepValue(64, 0, "part", 3)
    first = StepValue(128, 1, "first", 2, parts=((0, 0),))
    second = StepValue(128, 2, "second", 3, parts=((0, 64),))
    assert permitted_lower_bound([part, first, second], 64) == 256


def test_a_chain_of_concats_lies_in_the_last_one():
    x = cg.sin(cg.Var((64,)))
    for _ in range(4):
        x = cg.concat([x, cg.exp(x)])
    compiled = planned(x)
    parts = sum(len(v.parts) for v in compiled.layout.values)
    assert sum(whole >= 0 for whole in compiled.usage.inside) == parts == 8
    assert compiled.nbytes == compiled.lower_bound == x.nbytes


def test_parts_are_made_in_place_where_that_costs_nothing_and_only_there():
    early = cg.sin(cg.Var((256,)))
    wide = cg.exp(cg.broadcast_to(cg.sum(early), (4096,)))
    first = cg.concat([early, wide[:2048] + cg.sum(cg.sqrt(wide))])  # would stand beside all of `wide`
    last = cg.concat([first, cg.exp(first)])
    apart = cg.sum(cg.concat([cg.sin(last[:512]), cg.cos(last[512:1024])]))
    compiled = planned(apart)
    found = {compiled.layout.steps[whole].shape for whole in compiled.usage.inside if whole >= 0}
    assert (1024,) in found and first.shape not in found
    ways = [usage_of(compiled.layout.values, 64, True, join) for join in (True, False)]
    assert compiled.nbytes <= min(lower_bound(way.problem) for way in ways)


def test_sizes_are_rounded_up_except_inside_a_concat_and_over_what_is_inside():
    values = [
        StepValue(10, 0, "part", 1), StepValue(10, 1, "over it", 3, overwritable=(0,)), StepValue(10, 2, "beside", 3),
        StepValue(30, 3, "concat", 3, parts=((0, 0),)), StepValue(10, 4, "over another", 4, overwritable=(2,)),
    ]  # fmt: skip
    assert aligned_sizes(values, 64) == [10, 10, 64, 64, 64]
