"""States of a loop whose body is built once: of fixed shapes, counters, or arrays that grow."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, Value
from cgraph.formats.onnx.dynamic.bounds import Length, Size, bounds_of_length, node_of
from cgraph.formats.onnx.dynamic.distance import exact_distance, most_distance
from cgraph.formats.onnx.dynamic.value import (
    Array,
    Ragged,
    lengths_of,
    node_in,
    pads_zeros,
    part_of_axis,
    resize_axis,
    with_lengths,
)
from cgraph.formats.onnx.either import are_alike
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Var
from cgraph.ops.prefix import Prefix
from cgraph.record import Record, replace

LONGEST = np.iinfo(np.int32).max


class Growth(Record):
    """How the length of an axis changes from round to round.

    Fields
        rise: the most elements that a round adds
        max_length: the maximum of the length before and after all rounds
        is_steady: each round adds exactly `rise` elements
    """

    rise: int
    max_length: int
    is_steady: bool


class LoopState(Record, eq=False):
    """A state of a loop.

    Fields
        start: its value before the first round
        axes: for each axis of dynamic length, how it grows
        step: of a counter, an integer of one element, what each round adds to it; None for any other state
        pads_zeros: the array is zero beyond its lengths before and after all rounds
    """

    start: Array
    axes: Mapping[int, Growth]
    step: int | None = None
    pads_zeros: bool = False


class StateEntry(Record, eq=False):
    """A state before a round.

    Fields
        names: Vars that the loop carries: the array, and the lengths that are not steady
        value: what the body gets
        lengths: of each dynamic axis
    """

    names: list[Var]
    value: Array
    lengths: Mapping[int, Length]


def first_guess(c: Context, start: Value, after: Value, most: int) -> LoopState | None:
    """Return how a state changes if `most` rounds change it as the first one did; None if it changes its kind."""
    if not are_alike(start, after):
        return None
    pairs = list(zip(lengths_of(start), lengths_of(after)))
    axes = {axis: growth_of(c, n, m, most) for axis, (n, m) in enumerate(pairs) if not isinstance(n, int) or n != m}
    if any(growth is None for growth in axes.values()):
        return None
    return LoopState(start, axes, step_of(c, start, after), isinstance(start, Node))  # type: ignore[arg-type]


def step_of(c: Context, before: Array, after: Array) -> int | None:
    """Return what a round adds to an integer of one element, if that is one number in all runs."""
    if not (isinstance(before, Node) and isinstance(after, Node) and before.spec == after.spec):
        return None
    if before.size != 1 or before.dtype not in (np.int32, np.int64):
        return None
    return exact_distance(c.limits, *(c.limits.lengths(cg.reshape(x, (1,)))[0] for x in (after, before)))


def growth_of(c: Context, before: Length, after: Length, most: int) -> Growth | None:
    """Return how a length grows if `most` rounds change it as the first one did; None if nothing bounds it."""
    rise = exact_distance(c.limits, after, before)
    longest = bounds_of_length(before)[1]
    if rise is not None and rise >= 0:
        return make_growth(rise, longest + most * rise, True)
    return make_growth(0, max(longest, bounds_of_length(after)[1]), False)


def make_growth(rise: float, max_length: float, is_steady: bool) -> Growth | None:
    """Return a Growth; None if no array can be that long."""
    return Growth(int(rise), int(max_length), is_steady) if max_length < LONGEST else None


def entry_of(c: Context, state: LoopState, rounds: Node) -> StateEntry:
    """Return what a round gets for a state after a number of rounds."""
    if state.step is not None:
        return StateEntry([], counter_after(state, rounds), {})
    shape = [state.axes[a].max_length if a in state.axes else n for a, n in enumerate(node_in(state.start).shape)]
    array = Var(tuple(shape), state.start.dtype)
    names = [array]
    lengths: dict[int, Length] = {}
    for axis, growth in state.axes.items():
        lengths[axis] = length_after(c, state, axis, rounds)
        if not growth.is_steady:
            names.append(Var((), "int64"))
            c.limits.at_most(names[-1], growth.max_length - growth.rise, 0)
            lengths[axis] = c.limits.length(names[-1])
    value: Any = array
    for axis, n in lengths.items():
        value = part_of_axis(value, axis, slice(0, n)) if isinstance(n, int) else value
    counts = {axis: n for axis, n in lengths.items() if isinstance(n, Size)}
    if state.pads_zeros and counts:
        c.limits.zero_padded[array] = {axis: n.node for axis, n in counts.items()}
    return StateEntry(names, Ragged(value, counts) if counts else value, lengths)


def counter_after(state: LoopState, rounds: Node) -> Node:
    """Return a counter after a number of rounds."""
    start: Any = state.start
    return start + cg.reshape(cg.astype(rounds * state.step, start.dtype), start.shape)


def length_after(c: Context, state: LoopState, axis: int, rounds: Node) -> Length:
    """Return the length of an axis that grows steadily, after a number of rounds."""
    first, rise = lengths_of(state.start)[axis], state.axes[axis].rise
    return c.limits.length(node_of(first) + rounds * rise) if rise else first


def revise(c: Context, state: LoopState, entry: StateEntry, after: Value, most: int) -> LoopState | None:
    """Return `state` if a round changes a state as it says; else another one to try, or None."""
    if not are_alike(entry.value, after):
        return None
    if state.step is not None:
        return state if step_of(c, entry.value, after) == state.step else replace(state, step=None)
    axes = dict(state.axes)
    for axis, (n, m) in enumerate(zip(lengths_of(state.start), lengths_of(after))):
        if axis in axes:
            new = revised_growth(c, axes[axis], n, entry.lengths[axis], m, most)
        elif n == m:
            continue
        else:
            new = growth_of(c, n, m, most)
        if new is None:
            return None
        axes[axis] = new
    if axes != state.axes:
        return replace(state, axes=axes)
    is_kept = not state.pads_zeros or not isinstance(after, Ragged) or pads_zeros(c.limits, after)
    return state if is_kept else replace(state, pads_zeros=False)


def revised_growth(c: Context, old: Growth, first: Length, before: Length, after: Length, most: int) -> Growth | None:
    """Return `old` if a round changes a length as it says; else another one to try, or None."""
    if old.is_steady and exact_distance(c.limits, after, before) == old.rise:
        return old
    if fits(c, old, before, after):
        return Growth(old.rise, old.max_length, False)
    rise = most_distance(c.limits, after, before)
    if rise < LONGEST:
        return make_growth(max(rise, 0), bounds_of_length(first)[1] + most * max(rise, 0), False)
    return make_growth(0, bounds_of_length(after)[1], False) if not old.rise else None


def fits(c: Context, growth: Growth, before: Length, after: Length) -> bool:
    """Return True if a round adds no more elements than `growth` says, or leaves room for those of one round."""
    bound = bounds_of_length(after)[1]
    return most_distance(c.limits, after, before) <= growth.rise or bound <= growth.max_length - growth.rise


def start_nodes(state: LoopState) -> list[Node]:
    """Return the values of a state's Vars before the first round."""
    if state.step is not None:
        return []
    return at_maximum(state, state.start)


def next_nodes(c: Context, state: LoopState, entry: StateEntry, after: Array) -> list[Node]:
    """Return the values of a state's Vars after a round, which checks lengths that only their bounds limit."""
    if state.step is not None:
        return []
    for axis, growth in state.axes.items():
        before, length = entry.lengths[axis], lengths_of(after)[axis]
        if isinstance(length, Size) and exact_distance(c.limits, length, before) is None:
            is_slow = most_distance(c.limits, length, before) <= growth.rise
            most = node_of(before) + growth.rise if is_slow else growth.max_length - growth.rise
            text = f"{c.unequal}: axis {axis} of a state has more elements after a round than its bounds say"
            c.limits.check(cg.less_equal(length.node, most), text)
    return at_maximum(state, after)


def at_maximum(state: LoopState, x: Array) -> list[Node]:
    """Return an array of its maximum lengths, and its lengths that are not steady."""
    node = node_in(x)
    while isinstance(node.op, Prefix):
        node = node.operands[0]
    for axis, growth in state.axes.items():
        node = resize_axis(node, axis, growth.max_length)
    lengths = lengths_of(x)
    return [node, *(node_of(lengths[axis]) for axis, growth in state.axes.items() if not growth.is_steady)]


def value_after(c: Context, state: LoopState, last: Sequence[Node], rounds: Node) -> Array:
    """Return a state after all rounds, from the values of its Vars."""
    if state.step is not None:
        return counter_after(state, rounds)
    node, *counts = last
    lengths = {}
    for axis, growth in state.axes.items():
        lengths[axis] = length_after(c, state, axis, rounds)
        if not growth.is_steady:
            lengths[axis] = c.limits.length(cg.clip(counts.pop(0), 0, growth.max_length))
    return with_lengths(node, lengths)
