"""Who shares whose bytes, on random values: replayed byte by byte, and bounded by plain counting.

Values here are records without a graph, so that every combination of the permissions occurs: parts that are kept, that
overwrite, that are wanted by two results; results that are parts; operands read once more where they are overwritten.
"""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgraph.ir.bands import InPlaceJoin
from cgraph.memory.bounds import lower_bound
from cgraph.memory.check import check_plan
from cgraph.memory.permissions import aligned_sizes, permitted_lower_bound
from cgraph.memory.strategies.greedy_by_size import greedy_by_size
from cgraph.memory.strategies.squeaky_wheel import squeaky_wheel
from cgraph.memory.usage import StepValue, Usage, usage_of

WAYS = list(product((True, False), (True, False)))


@st.composite
def many_values(draw, most: int = 8) -> list[StepValue]:
    """Values of one step each; some may overwrite earlier ones that they read, some are made of earlier ones."""
    count = draw(st.integers(1, most))
    values: list[StepValue] = []
    for t in range(count):
        last = draw(st.integers(t, count - 1))
        kept = draw(st.integers(0, 5)) == 0
        read = [i for i, v in enumerate(values) if v.last >= t]
        value = StepValue(draw(st.sampled_from((0, 4, 8, 8, 12))), t, f"v{t}", count - 1 if kept else last, kept)
        if read and draw(st.booleans()):
            inside = draw(st.lists(st.sampled_from(read), unique=True, max_size=3))
            at = 4 * draw(st.integers(0, 1))
            parts = []
            for x in inside:
                parts.append((x, at))
                at += values[x].nbytes
            value.parts, value.nbytes = tuple(parts), at + 4 * draw(st.integers(0, 1))
        if read and draw(st.booleans()):
            value.overwritable = tuple(draw(st.lists(st.sampled_from(read), unique=True, max_size=2)))
        values.append(value)
    return values


def replay(values: list[StepValue], usage: Usage, offsets: list[int], nbytes: int) -> None:
    """Each step writes names into bytes; whatever is read later must still have its own."""
    memory: list[object] = [None] * nbytes
    names: list[list[object]] = []
    spans = [range(at, at + v.nbytes) for at, v in zip(offsets, values)]
    for t, value in enumerate(values):
        new: list[object] = [(t, k) for k in range(value.nbytes)]
        for x, at in value.parts:
            if usage.inside[x] == t:
                assert offsets[x] == offsets[t] + at
                new[at : at + values[x].nbytes] = names[x]
        before = [memory[b] for b in spans[t]]
        for b, name in zip(spans[t], new):
            memory[b] = name
        names.append(new)
        changed = {b for b, name, was in zip(spans[t], new, before) if name != was}
        for i in range(t + 1):
            other = values[i]
            if i < t and (other.last > t or other.lasting) or i == t:
                assert [memory[b] for b in spans[i]] == names[i], (i, t)
            elif other.last == t and changed.intersection(spans[i]):
                exact = i in value.overwritable and spans[i] == spans[t]
                assert exact and usage.shared[t] in [i, *others_at(usage, spans, i)], (i, t)


def others_at(usage: Usage, spans: list[range], i: int) -> list[int]:
    """Values that lie in the very bytes of this one."""
    return [x for x, span in enumerate(spans) if span == spans[i]]


@settings(max_examples=400)
@given(values=many_values(), alignment=st.sampled_from((1, 4, 16)))
def test_values_that_share_bytes_never_spoil_what_is_read(values, alignment):
    for overwrite, join in WAYS:
        usage = usage_of(values, alignment, overwrite, join)
        plan = greedy_by_size(usage.problem)
        check_plan(usage.problem, plan)
        replay(values, usage, [usage.offset(plan, i) for i in range(len(values))], plan.nbytes + 16)
        assert overwrite or set(usage.shared) == {-1}
        assert join or set(usage.inside) == {-1}


@settings(max_examples=300)
@given(values=many_values(), alignment=st.sampled_from((1, 4, 16)), data=st.data())
def test_no_use_of_the_permissions_needs_less_than_the_bound(values, alignment, data):
    bound = permitted_lower_bound(values, alignment)
    joined = data.draw(st.sets(st.sampled_from(range(len(values)))))
    for overwrite, join in [*WAYS, (True, joined)]:
        assert bound <= lower_bound(usage_of(values, alignment, overwrite, join).problem)


@settings(max_examples=300)
@given(values=many_values(), alignment=st.sampled_from((1, 4, 16)))
def test_the_bound_is_what_plain_counting_says(values, alignment):
    """At each step, the bytes in use, less the most that is overwritten, less parts of what is in use beside them."""
    sizes, most = aligned_sizes(values, alignment), 0
    for t in range(len(values)):
        in_use = [i for i, v in enumerate(values) if v.step <= t <= v.last]
        total = sum(sizes[i] for i in in_use)
        for i in in_use:
            if any(i in dict(values[w].parts) for w in in_use):
                total -= sizes[i]
        if values[t].step == t:
            taken = [
                sizes[x]
                for x in values[t].overwritable
                if values[x].last == t and not values[x].lasting and values[x].nbytes == values[t].nbytes
            ]
            total -= max(taken, default=0)
        most = max(most, total)
    assert permitted_lower_bound(values, alignment) == -(-most // alignment) * alignment


@settings(max_examples=200)
@given(values=many_values(), alignment=st.sampled_from((1, 4, 16)))
def test_sizes_are_rounded_where_a_value_has_an_operand_of_its_own(values, alignment):
    sizes = aligned_sizes(values, alignment)
    for overwrite, join in WAYS:
        usage = usage_of(values, alignment, overwrite, join)
        for i, operand in enumerate(usage.operand_of):
            assert values[i].nbytes <= sizes[i] <= max(sizes[i], int(usage.problem.nbytes[operand]))
    assert all(size in (v.nbytes, -(-v.nbytes // alignment) * alignment) for size, v in zip(sizes, values))


def test_a_concat_overwrites_nothing_when_its_parts_lie_inside_it():
    values = [
        StepValue(8, 0, "x", 2),
        StepValue(8, 1, "y", 2),
        StepValue(8, 2, "z", 2, overwritable=(0,), parts=((1, 0),)),
    ]
    assert usage_of(values, 1).shared == [-1, -1, -1]
    assert usage_of(values, 1, join=False).shared == [-1, -1, 0]


def test_of_two_operands_the_first_that_allows_it_is_overwritten():
    values = [StepValue(8, 0, "x", 3), StepValue(8, 1, "y", 2), StepValue(8, 2, "z", 3, overwritable=(0, 1))]
    assert usage_of(values, 1).shared == [-1, -1, 1]
    values[0].last = 2
    assert usage_of(values, 1).shared == [-1, -1, 0]
    values[0].lasting = True
    assert usage_of(values, 1).shared == [-1, -1, 1]
    values[1].nbytes = 4
    assert usage_of(values, 1).shared == [-1, -1, -1]


def test_a_part_is_made_inside_the_first_of_two_results():
    values = [
        StepValue(8, 0, "x", 2),
        StepValue(8, 1, "a", 2, parts=((0, 0),)),
        StepValue(16, 2, "b", 2, parts=((0, 8),)),
    ]
    assert usage_of(values, 1).inside == [1, -1, -1]
    assert usage_of(values, 1, join={2}).inside == [2, -1, -1]
    assert usage_of(values, 1, join={0}).inside == [-1, -1, -1]


def test_bytes_beside_a_part_may_be_overwritten_and_bytes_in_it_may_not():
    values = [
        StepValue(8, 0, "x", 4),
        StepValue(8, 1, "y", 2),
        StepValue(16, 2, "both", 4, parts=((0, 0), (1, 8))),
        StepValue(8, 3, "z", 4, overwritable=(1,)),
    ]
    values[1].last = 3
    assert usage_of(values, 1).shared == [-1, -1, -1, -1]  # `both` is read later
    values[2].last = 2
    assert usage_of(values, 1).shared == [-1, -1, -1, 1]


@settings(max_examples=60, deadline=None)
@given(many_values(), st.sampled_from((1, 4, 64)), st.booleans(), st.booleans())
def test_what_bounds_read_is_the_problem_of_strategies(values, alignment, overwrite, join):
    """Sizes, rounded to the alignment, and intervals of each operand in its order."""
    usage = usage_of(values, alignment, overwrite, join)
    spans, problem = usage.spans, usage.problem
    assert spans.nbytes.tolist() == problem.nbytes.tolist() and all(n % alignment == 0 for n in spans.nbytes.tolist())
    assert spans.first.tolist() == problem.first.tolist() and spans.last.tolist() == problem.last.tolist()
    assert lower_bound(spans) == lower_bound(problem)


def test_a_value_of_no_bytes_is_no_part():
    values = [
        StepValue(0, 0, "empty", 2), StepValue(8, 1, "y", 2), StepValue(8, 2, "both", 2, parts=((0, 0), (1, 0))),
    ]  # fmt: skip
    assert usage_of(values, 1).inside == [-1, 2, -1]


@pytest.mark.parametrize(("last", "is_over"), [(2, True), (3, False), (4, False)])
def test_a_result_overlaps_a_part_of_a_concat_only_if_no_step_reads_that_any_more(last, is_over):
    values = [
        StepValue(8, 0, "x", 3),
        StepValue(8, 1, "y", 2),
        StepValue(16, 2, "both", last, parts=((0, 0), (1, 8))),
        StepValue(16, 3, "z", 4, over=InPlaceJoin(0, 8)),
    ]
    assert (usage_of(values, 1).pieces is not None) == is_over
    values[0].lasting = True
    assert usage_of(values, 1).pieces is None


@pytest.mark.parametrize(("alignment", "apart"), [(1, 8), (16, 16)])
def test_parts_of_two_concats_overlap_by_their_own_distance(alignment, apart):
    """`z` begins 8 bytes before `x`, of which it reads the bytes; each lies 8 bytes inside the result it is a part
    of."""
    values = [
        StepValue(8, 0, "x", 3),
        StepValue(8, 1, "y", 2),
        StepValue(16, 2, "both", 2, parts=((1, 0), (0, 8))),
        StepValue(16, 3, "z", 5, over=InPlaceJoin(0, 8)),
        StepValue(8, 4, "w", 5),
        StepValue(24, 5, "all", 6, parts=((4, 0), (3, 8))),
    ]
    usage = usage_of(values, alignment)
    assert usage.inside == [2, 2, -1, 5, 5, -1] and usage.delta == [8, 0, 0, 8, 0, 0]
    assert [(x.name, x.nbytes, x.interval.first, x.interval.last) for x in usage.problem.operands] == [
        ("both", 16, 0, 2),
        ("all over both", apart + 16, 3, 3),
        ("all", 24, 4, 6),
    ]
    (ties,) = usage.problem.ties
    assert [(tie.operand, tie.at) for tie in ties] == [(0, 0), (1, -apart), (2, -apart)]
    assert [usage.offset(squeaky_wheel(usage.problem), i) for i in range(6)] == [apart + 8, apart, apart, 8, 0, 0]


def test_a_part_does_not_overlap_another_of_the_same_concat():
    values = [
        StepValue(8, 0, "x", 1),
        StepValue(16, 1, "z", 2, over=InPlaceJoin(0, 8)),
        StepValue(24, 2, "both", 3, parts=((0, 16), (1, 0))),
    ]
    assert usage_of(values, 1).pieces is None
    assert usage_of(values, 1, join=False).pieces is not None
