"""Loops whose body is built once: a run computes as many rounds as it needs."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, Value
from cgraph.formats.onnx.dynamic.bounds import Check, Length, node_of
from cgraph.formats.onnx.dynamic.value import with_lengths
from cgraph.ir.graph import Node, apply
from cgraph.ops.closure import close
from cgraph.ops.leaf import Const, Var
from cgraph.ops.loop import Body
from cgraph.ops.shape import items
from cgraph.ops.while_loop import WhileLoop
from cgraph.record import Record


class Round(Record, eq=False):
    """One round of a Loop, as a function of the number of the round, the condition and the states.

    Fields
        number, going: Vars of the number and the condition
        names: Vars of the states of fixed shape
        goes_on: the condition after the round
        states: the states of fixed shape after the round
        blocks: the rows that it appends to other states and to the collected results
        checks: the conditions that a run checks in each round
    """

    number: Var
    going: Var
    names: list[Var]
    goes_on: Node
    states: list[Node]
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
    state, trips, going = start.state, start.trips, start.going
    one = round_of(c, start.body, state, growing, going, most) if most != 0 else None
    if one is None or (most is None and one.blocks):
        return None
    stacked = [Var(((most or 0) * x.shape[0], *x.shape[1:]), x.dtype) for x in one.blocks]
    conditions = [Var((), "bool") for _ in one.checks]
    names = [one.number, one.going, *one.names, *stacked, *conditions]
    goes = cg.reshape(one.going, ())
    test = goes if trips is None else cg.logical_and(goes, cg.less(one.number, node_of(trips)))
    after = [one.number + 1, one.goes_on, *one.states]
    after += [cg.set_rows(y, one.number * x.shape[0], x) for y, x in zip(stacked, one.blocks)]
    after += [cg.logical_and(y, x.holds) for y, x in zip(conditions, one.checks)]
    fixed = [x for i, x in enumerate(state) if i not in growing]
    zeros = [cg.broadcast_to(Const(np.zeros((), y.dtype)), y.shape) for y in stacked]
    number = Const(np.array(start.number, np.int64))
    values = [number, going, *fixed, *zeros, *[Const(np.array(True))] * len(conditions)]
    rounds, last_going, *last = loop_while(test, names, after, values, most)  # type: ignore[arg-type]
    for holds, check in zip(last[len(last) - len(conditions) :], one.checks):
        c.limits.check(holds, check.text)
    if trips is None and most is not None:
        ended = cg.logical_not(cg.reshape(last_going, ()))
        c.limits.check(ended, f"{c.unequal}: the loop has not ended after {most} turns")
    return results_of(
        c,
        state,
        growing,
        rounds if most is None else cg.clip(rounds, 0, most),
        last[: len(last) - len(conditions)],
        one.blocks,
    )


def round_of(
    c: Context, body: Any, state: Sequence[Value], growing: Sequence[int], going: Node, most: int | None
) -> Round | None:
    """Build one round; None if its values have no fixed shapes, or if it needs a state that is known now."""
    if not all(isinstance(x, Node) for x in state):
        return None
    number, condition = Var((), "int64"), Var(going.shape, going.dtype)
    if most is not None:
        c.limits.at_most(number, most - 1)
    values = [x[:0] if i in growing else Var(x.shape, x.dtype) for i, x in enumerate(state)]  # type: ignore[union-attr, index]
    first = len(c.limits.checks)
    try:
        results = c.build(body, [number, condition, *values])
    except FormatError:
        results = [None]
    checks = c.limits.checks[first:]
    del c.limits.checks[first:]
    if not all(isinstance(x, Node) for x in results) or results[0].spec != going.spec:  # type: ignore[union-attr]
        return None
    new, collected = results[1 : 1 + len(state)], results[1 + len(state) :]
    fixed = [i for i in range(len(state)) if i not in growing]
    if any(new[i].spec != state[i].spec for i in fixed):  # type: ignore[union-attr]
        return None
    blocks = [*(new[i] for i in growing), *(cg.expand_dims(x, 0) for x in collected)]
    return Round(number, condition, [values[i] for i in fixed], results[0], [new[i] for i in fixed], blocks, checks)  # type: ignore[arg-type, misc]


def results_of(
    c: Context, state: Sequence[Value], growing: Sequence[int], rounds: Node, last: Sequence[Node], blocks: list[Node]
) -> tuple[Value, ...]:
    """Return the states and the collected results after a number of rounds.

    Parameters
        last: the states of fixed shape, then stacked blocks of rows
        blocks: those of one round
    """
    count = len(state) - len(growing)
    fixed, stacked = iter(last[:count]), last[count:]
    states: list[Value] = [None if i in growing else next(fixed) for i in range(len(state))]
    for i, rows, block in zip(growing, stacked, blocks):
        first: Any = state[i]
        length = c.limits.length(rounds * block.shape[0] + first.shape[0])
        states[i] = with_lengths(cg.concat([first, rows], 0), {0: length})
    length = c.limits.length(rounds)
    return (*states, *(with_lengths(x, {0: length}) for x in stacked[len(growing) :]))


def loop_while(
    p: Node, names: Sequence[Var], after: Sequence[Node], start: Sequence[Node], maximum: int | None
) -> tuple[Node, ...]:
    """Return the last state of a loop from `start` on: while `p` holds, the state `names` becomes `after`."""
    closed = close(names, [p, *after])
    test = Body((), (), (*names, *closed.names), (), closed.results[:1])
    one_round = Body(tuple(names), (), closed.names, closed.results[1:], ())
    return items(apply(WhileLoop(test, one_round, maximum), *start, *closed.shared))
