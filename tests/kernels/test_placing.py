"""Native loops of the planner against searches byte by byte: smallest gaps, lines of a skyline, first fit."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cgraph.kernels.kernel import Pointer
from cgraph.kernels.placing.signature import FAR, FIRST_FIT, IN_GAPS, IN_LINES, VECTOR
from tests.support.kernels import run_calls

operands = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 12), st.integers(0, 5)), min_size=1, max_size=30)


def pointers(**arrays):
    return {name: Pointer(x) for name, x in arrays.items()}


def gaps(nbytes, first, last, *stops):
    """Offsets by `in_gaps`, which is called once for each of these stops."""
    n = len(nbytes)
    offsets, placed, start = np.full(n, -5), np.full((4, n + VECTOR), -1), 0
    arrays = pointers(nbytes=nbytes, first=first, last=last, offsets=offsets, placed=placed)
    for stop in (*stops, n):
        run_calls([IN_GAPS.call((), 1, **arrays, room=n + VECTOR, start=start, stop=stop)])
        start = stop
    order = np.argsort(offsets, kind="stable")
    np.testing.assert_array_equal(placed[0, :n], offsets[order])
    assert (placed[:, n:] == -1).all() and sorted(placed[1, :n]) == sorted(offsets + nbytes)
    return offsets.tolist()


def gaps_by_bytes(nbytes, first, last):
    """The same from one table of bytes for each operand."""
    offsets: list[int] = []
    for i, size in enumerate(nbytes):
        used = np.zeros(nbytes.sum() + 1, bool)
        for j, at in enumerate(offsets):
            if first[j] <= last[i] and last[j] >= first[i]:
                used[at : at + nbytes[j]] = True
        top = int(np.flatnonzero(used)[-1]) + 1 if used.any() else 0
        edges = np.flatnonzero(np.diff(np.concatenate([[True], used[:top], [True]]).astype(int)))
        free = [(end - begin, begin) for begin, end in edges.reshape(-1, 2) if end - begin >= size]
        offsets.append(min(free, default=(0, top))[1])
    return offsets


@settings(max_examples=60)
@given(operands, st.integers(0, 30))
def test_each_operand_lies_in_the_smallest_gap_or_above_all_that_it_meets(boxes, stop):
    nbytes, first, span = np.array(boxes, np.int64).T.copy()
    want = gaps_by_bytes(nbytes, first, first + span)
    assert gaps(nbytes, first, first + span) == want
    assert gaps(nbytes, first, first + span, min(stop, len(boxes))) == want


def test_intervals_that_share_a_step_meet():
    one = np.ones(3, np.int64)
    assert gaps(one, np.array([0, 2, 3]), np.array([2, 3, 4])) == [0, 1, 0]


def test_of_equal_gaps_the_lowest_is_taken_whatever_lane_it_is_in():
    """Blocks of 2 bytes all the time, and between them gaps of 3, 2, 3, 2 ... bytes while the first ones last."""
    count = 2 * VECTOR
    nbytes = np.array([2, 3, 2, 2] * (count // 2) + [2, 2, 3, 2])
    first = np.array([0, 0, 0, 0] * (count // 2) + [9, 9, 9, 9])
    last = np.array([9, 1, 9, 1] * (count // 2) + [9, 9, 9, 9])
    got = gaps(nbytes, first, last)
    assert got == gaps_by_bytes(nbytes, first, last)
    assert got[-4:] == [7, 16, 2, 25]


@st.composite
def fits(draw):
    """Groups, in some order, and for pairs of them open intervals in which one may not begin after the other."""
    n = draw(st.integers(1, 7))
    pairs = draw(st.lists(st.tuples(*[st.integers(0, n - 1)] * 2, st.integers(-6, 3), st.integers(1, 6)), max_size=20))
    order = draw(st.permutations(range(n)))
    return n, sorted(pairs), order[: draw(st.integers(0, n))], draw(st.sampled_from([1, 4]))


@settings(max_examples=80)
@given(fits())
def test_each_group_begins_at_the_lowest_place_that_none_forbids(case):
    n, pairs, order, alignment = case
    pairs = [(i, j, low, low + size) for i, j, low, size in pairs if i != j]
    owners, others, begins, ends = np.array(pairs, np.int64).reshape(-1, 4).T.copy()
    bases = np.full(n, -1)
    starts = {"places": Pointer(np.searchsorted(owners, np.arange(n + 1)))}
    arrays = pointers(order=np.array([*order, 0]), others=others, begins=begins, ends=ends, bases=bases)
    run_calls([FIRST_FIT.call((), 1, **arrays, **starts, alignment=alignment, count=len(order))])
    want = [-1] * n
    for i in order:
        forbidden = [(want[j] + low, want[j] + high) for owner, j, low, high in pairs if owner == i and want[j] >= 0]
        want[i] = next(at for at in range(0, 10**4, alignment) if not any(low < at < high for low, high in forbidden))
    assert bases.tolist() == want


def lines(nbytes, first, last, columns, pieces=1):
    """Offsets of operands by first column, placed on the lines of a skyline; `pieces`: number of calls."""
    n = len(nbytes)
    offsets, skyline = np.full(n, -5), np.full((2, columns + 2 + VECTOR), FAR)
    skyline[:, 1], skyline[0, 2] = 0, columns

    def pad(x):
        return np.concatenate([x, np.full(VECTOR, FAR)])

    arrays = pointers(
        nbytes=nbytes, first=first, last=pad(last), shortness=pad(first - last), offsets=offsets,
        operands=np.searchsorted(first, np.arange(columns + 1)), line_count=np.ones(1, np.int64), lines=skyline,
    )  # fmt: skip
    cuts = np.linspace(0, n, pieces + 1).astype(int).tolist()
    for start, stop in zip(cuts, cuts[1:]):
        run_calls([IN_LINES.call((), 1, **arrays, room=skyline.shape[1], start=start, stop=stop)])
    return offsets.tolist()


def lines_by_columns(nbytes, first, last, columns):
    """The same on a list of the height of every column."""
    heights, offsets = [0] * columns, {}
    while len(offsets) < len(nbytes):
        low = min(heights)
        begin = heights.index(low)
        end = next((c for c in range(begin, columns) if heights[c] != low), columns)
        inside = [i for i in range(len(nbytes)) if i not in offsets and begin <= first[i] and last[i] < end]
        if not inside:
            wall = min(heights[c] for c in (begin - 1, end) if 0 <= c < columns)
            heights[begin:end] = [wall] * (end - begin)
            continue
        best = max(inside, key=lambda i: (last[i] - first[i], -i))
        offsets[best] = low
        heights[first[best] : last[best] + 1] = [low + int(nbytes[best])] * int(last[best] - first[best] + 1)
    return [offsets[i] for i in range(len(nbytes))]


@settings(max_examples=60)
@given(operands, st.integers(1, 3))
def test_the_lowest_line_gets_the_longest_operand_that_fits(boxes, pieces):
    """Lines of one height that meet only by chance stay apart, so sizes are powers of two whose sums all differ."""
    boxes = sorted(boxes, key=lambda x: x[1])
    _, first, span = np.array(boxes, np.int64).T.copy()
    nbytes = 1 << np.random.default_rng(len(boxes)).permutation(len(boxes)).astype(np.int64)
    last, columns = first + span, 20
    assert lines(nbytes, first, last, columns, pieces) == lines_by_columns(nbytes, first, last, columns)
