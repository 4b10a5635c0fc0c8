"""Loops whose body is built once: a run computes as many rounds as it needs."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import islice
from typing import Any, Protocol

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, Value
from cgraph.formats.onnx.dynamic.bounds import Check, Length, bounds_of_length, node_of
from cgraph.formats.onnx.dynamic.value import with_lengths
from cgraph.formats.onnx.operators.loop_states import (
    LoopState,
    StateEntry,
    entry_of,
    first_guess,
    next_nodes,
    revise,
    start_nodes,
    value_after,
)
from cgraph.ir.graph import Node, apply
from cgraph.ir.traverse import post_order
from cgraph.ops.closure import close
from cgraph.ops.leaf import Const, Var
from cgraph.ops.loop import Body
from cgraph.ops.shape import items
from cgraph.ops.while_loop import WhileLoop
from cgraph.record import Record

MOST_TRIPS = 10_000
BOUND = 1000  # cost of the bounds of a node, in computed elements
MOST_GUESSES = 5  # builds of a body until its states change as it was built for


class Round(Record, eq=False):
    """One round of a Loop, as a function of the number of the round, the condition and the states.

    Fields
        number, going: Vars of the number and the condition
        states: all states, but for those to which rows are appended
        entries: what the round gets for each of them
        goes_on: the condition after the round
        after: the values of the Vars of `entries` after the round
        blocks: the rows that it appends to other states and to the collected results
        checks: the conditions that a run checks in each round
    """

    number: Var
    going: Var
    states: Sequence[LoopState]
    entries: list[StateEntry]
    goes_on: Node
    after: list[Node]
    blocks: list[Node]
    checks: list[Check]


class LoopStart(Protocol):
    """A Loop before a round.

    Fields
        body: the graph of a round
        trips: number of rounds; None without one
        going: the condition of the next round
        state: the values that a round passes to the next
        number: of rounds so far
    """

    body: Any
    trips: Length | None
    going: Node
    state: list[Value]
    number: int


def counted_loop(c: Context, start: LoopStart, growing: Sequence[int], most: int | None) -> tuple[Value, ...] | None:
    """Import the rest of a Loop of at most `most` rounds (None: any number); None if its body cannot be built once.

    Its states, and what it collects, must have fixed shapes; states in `growing` are arrays to which rows are appended.
    Rows are kept for `most` rounds, so a Loop of any number of rounds must keep none.
    """
    if most == 0 or not all(isinstance(x, Node) for x in start.state):
        return None
    states = [LoopState(x, {}) for i, x in enumerate(start.state) if i not in growing]
    one, _ = round_of(c, start, growing, states, most)
    if one is None or (most is None and one.blocks):
        return None
    return results_of(c, start, growing, one, most)


def grown_loop(
    c: Context, start: LoopStart, growing: Sequence[int], after: Sequence[Value], most: int | None
) -> tuple[Value, ...] | None:
    """Import a Loop whose states grow, or have dynamic lengths, with a body that is built once; None if it cannot be.

    Parameters
        after: the states after the first round
        most: maximum number of rounds; None if only the condition may bound them
    """
    if most is None:
        guess = growing_round(c, start, growing, after, MOST_TRIPS)
        most = last_round(c, guess) if guess is not None else None
    one = growing_round(c, start, growing, after, most) if most else None
    return None if one is None else results_of(c, start, growing, one, most)


def growing_round(
    c: Context, start: LoopStart, growing: Sequence[int], after: Sequence[Value], most: int
) -> Round | None:
    """Build a round until it changes the states as it was built for; None if that does not happen."""
    pairs = [(x, y) for i, (x, y) in enumerate(zip(start.state, after)) if i not in growing]
    states = [first_guess(c, x, y, most) for x, y in pairs]
    for _ in range(MOST_GUESSES):
        if any(x is None for x in states):
            return None
        one, states = round_of(c, start, growing, states, most)  # type: ignore[arg-type, assignment]
        if one is not None:
            return one
    return None


def last_round(c: Context, one: Round) -> int | None:
    """Return the number of rounds after which the condition surely fails; None if its bounds do not show one."""
    c.spend(work=BOUND * MOST_TRIPS.bit_length() * len(post_order([one.goes_on])))
    if not ends_by(c, one, MOST_TRIPS - 1):
        return None
    return 1 + bisect_left(range(MOST_TRIPS - 1), True, key=lambda n: ends_by(c, one, n))


def ends_by(c: Context, one: Round, number: int) -> bool:
    """Return True if the condition fails after each round from one on."""
    high = c.limits.case(one.number, number, MOST_TRIPS).bounds(one.goes_on)[1]
    return bool(high.max() == 0)


def round_of(
    c: Context, start: LoopStart, growing: Sequence[int], states: Sequence[LoopState], most: int | None
) -> tuple[Round | None, Sequence[LoopState | None]]:
    """Build one round; None if it changes states otherwise than `states` says, and what to try instead.

    It is also None if what it collects has no fixed shape, or if it needs a state that is known now.
    """
    state, going = start.state, start.going
    number, condition = Var((), "int64"), Var(going.shape, going.dtype)
    if most is not None:
        c.limits.at_most(number, most - 1, min(start.number, most - 1))
    entries = [entry_of(c, x, number - start.number if start.number else number) for x in states]
    rest = iter(entries)
    values = [x[:0] if i in growing else next(rest).value for i, x in enumerate(state)]  # type: ignore[index]
    first = len(c.limits.checks)
    try:
        goes_on, *results = c.build(start.body, [number, condition, *values])
        new, blocks = results[: len(state)], [results[i] for i in growing]
        collected = results[len(state) :]
        if not all(isinstance(x, Node) for x in (goes_on, *blocks, *collected)) or goes_on.spec != going.spec:
            return None, [None]
        left = [x for i, x in enumerate(new) if i not in growing]
        revised = [revise(c, x, entry, y, most or MOST_TRIPS) for x, entry, y in zip(states, entries, left)]
        if any(x is not y for x, y in zip(revised, states)):
            return None, revised
        after = [node for x, entry, y in zip(states, entries, left) for node in next_nodes(c, x, entry, y)]
        checks = c.limits.checks[first:]
    except FormatError:
        return None, [None]
    finally:
        del c.limits.checks[first:]
    blocks += [cg.expand_dims(x, 0) for x in collected]
    return Round(number, condition, states, entries, goes_on, after, blocks, checks), states


def results_of(c: Context, start: LoopStart, growing: Sequence[int], one: Round, most: int | None) -> tuple[Value, ...]:
    """Return the states and the collected results after all rounds."""
    trips = start.trips
    stacked = [Var(((most or 0) * x.shape[0], *x.shape[1:]), x.dtype) for x in one.blocks]
    conditions = [Var((), "bool") for _ in one.checks]
    names = [x for entry in one.entries for x in entry.names]
    goes = cg.reshape(one.going, ())
    test = goes if trips is None else cg.logical_and(goes, cg.less(one.number, node_of(trips)))
    after = [one.number + 1, one.goes_on, *one.after]
    after += [cg.set_rows(y, one.number * x.shape[0], x) for y, x in zip(stacked, one.blocks)]
    after += [cg.logical_and(y, x.holds) for y, x in zip(conditions, one.checks)]
    zeros = [cg.broadcast_to(Const(np.zeros((), y.dtype)), y.shape) for y in stacked]
    number = Const(np.array(start.number, np.int64))
    values = [number, start.going, *(x for state in one.states for x in start_nodes(state)), *zeros]
    values += [Const(np.array(True))] * len(conditions)
    loop_names = [one.number, one.going, *names, *stacked, *conditions]
    rounds, last_going, *last = loop_while(test, loop_names, after, values, most)
    for holds, check in zip(last[len(last) - len(conditions) :], one.checks):
        c.limits.check(holds, check.text)
    check_end(c, trips, last_going, rounds, most)
    rounds = rounds if most is None else cg.clip(rounds, 0, most)
    done = rounds - start.number if start.number else rounds
    nodes = iter(last)
    fixed = iter(
        [value_after(c, x, list(islice(nodes, len(entry.names))), done) for x, entry in zip(one.states, one.entries)]
    )
    rows = list(islice(nodes, len(stacked)))
    states = [None if i in growing else next(fixed) for i in range(len(start.state))]
    for i, more, block in zip(growing, rows, one.blocks):
        first: Any = start.state[i]
        length = c.limits.length(rounds * block.shape[0] + first.shape[0])
        states[i] = with_lengths(cg.concat([first, more], 0), {0: length})
    length = c.limits.length(rounds)
    return (*states, *(with_lengths(x, {0: length}) for x in rows[len(growing) :]))


def check_end(c: Context, trips: Length | None, going: Node, rounds: Node, most: int | None) -> None:
    """Make a run check that a Loop ended, if the file lets it go on after `most` rounds."""
    if most is None or (trips is not None and bounds_of_length(trips)[1] <= most):
        return
    goes = cg.reshape(going, ())
    goes = goes if trips is None else cg.logical_and(goes, cg.less(rounds, node_of(trips)))
    advice = "".join(f"; a larger maximum={{{name!r}: n}} allows more" for name in c.written_names[:1])
    c.limits.check(cg.logical_not(goes), f"{c.node_text}: the loop has not ended after {most} turns{advice}")


def loop_while(
    p: Node, names: Sequence[Var], after: Sequence[Node], start: Sequence[Node], maximum: int | None
) -> tuple[Node, ...]:
    """Return the last state of a loop from `start` on: while `p` holds, the state `names` becomes `after`."""
    closed = close(names, [p, *after])
    test = Body((), (), (*names, *closed.names), (), closed.results[:1])
    one_round = Body(tuple(names), (), closed.names, closed.results[1:], ())
    return items(apply(WhileLoop(test, one_round, maximum), *start, *closed.shared))
