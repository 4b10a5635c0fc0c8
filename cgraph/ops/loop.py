"""A loop over a sub-graph as one node; planning makes it a step with inner steps (`cgraph.ops.physical.rounds`)."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from cgraph.errors import ShapeError
from cgraph.ir.graph import Node, Op, apply
from cgraph.ir.spec import Bundle, Spec
from cgraph.ir.traverse import post_order
from cgraph.ops.leaf import Var, VarOp
from cgraph.ops.pullback import pullback
from cgraph.ops.shape import items, zeros_like
from cgraph.record import Record, replace


class Body(Record, eq=False):
    """The computation of one round of a loop.

    Fields
        carry: Vars for the state before the round
        xs: Vars for one row of each sequence
        shared: Vars for values that every round reads
        next: the state after the round, with the specs of `carry`
        ys: one row of each stacked result
    """

    carry: tuple[Var, ...]
    xs: tuple[Var, ...]
    shared: tuple[Var, ...]
    next: tuple[Node, ...]
    ys: tuple[Node, ...]

    @property
    def inputs(self) -> tuple[Var, ...]:
        return (*self.carry, *self.xs, *self.shared)

    @property
    def results(self) -> tuple[Node, ...]:
        return (*self.next, *self.ys)

    @cached_property
    def order(self) -> list[Node]:
        return post_order(self.results)

    def meaning(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Compute one round in NumPy."""
        arrays: dict[Node, Any] = dict(zip(self.inputs, values))
        for node in self.order:
            if not isinstance(node.op, VarOp):
                with np.errstate(all="ignore"):
                    arrays[node] = node.op.meaning(*(arrays[x] for x in node.operands))
        return [np.asarray(arrays[x], x.dtype) for x in self.results]


class Structured(Op):
    """Base of ops that run sub-graphs: loops and branches."""

    takes_complex = True

    @property
    def bodies(self) -> tuple[Body, ...]:
        """The sub-graphs."""
        raise NotImplementedError(f"{self.name} does not define bodies")

    def with_bodies(self, bodies: Sequence[Body]) -> Self:
        """Return the op with other sub-graphs of the same specs."""
        raise NotImplementedError(f"{self.name} does not define with_bodies")

    @property
    def pure(self) -> bool:  # type: ignore[override]
        return all(node.op.pure for body in self.bodies for node in body.order)

    @property
    def can_fail(self) -> bool:  # type: ignore[override]
        return any(node.op.can_fail for body in self.bodies for node in body.order)

    def infer(self, *specs: Spec) -> Bundle:
        raise NotImplementedError(f"{self.name} does not define infer")

    def check(self, specs: Sequence[Spec], expected: Sequence[Spec]) -> None:
        """Raise ShapeError unless the operands have these specs."""
        if list(specs) != list(expected):
            operands, reads = (", ".join(map(str, x)) for x in (specs, expected))
            raise ShapeError(f"operands are {operands}, but the body of {self.name} reads {reads}")


class Loop(Structured):
    """`length` rounds of a body, each of which passes its state to the next and gives a row to each stacked result.

    Operands
        carry: the initial state
        xs: sequences ``[length, ...]``
        shared: values that every round reads
    Fields
        backward: run from the last row to the first
        states: also return the state before each round
    Result
        a Bundle: the final state; for each y ``[length, ...]``; with `states`, for each carry ``[length, ...]``
    """

    body: Body
    length: int
    backward: bool = False
    states: bool = False

    @property
    def bodies(self) -> tuple[Body, ...]:
        return (self.body,)

    def with_bodies(self, bodies: Sequence[Body]) -> Self:
        return replace(self, body=bodies[0])

    @property
    def rounds(self) -> Sequence[int]:
        return range(self.length)[:: -1 if self.backward else 1]

    def parts(self, values: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
        """Split operands into carry, xs and shared."""
        a = len(self.body.carry)
        b = a + len(self.body.xs)
        return values[:a], values[a:b], values[b:]

    def infer(self, *specs: Spec) -> Bundle:
        body = self.body
        rows = [Spec((self.length, *x.shape), x.dtype) for x in body.xs]
        self.check(specs, [*(x.spec for x in body.carry), *rows, *(x.spec for x in body.shared)])
        stacked = (*body.ys, *(body.carry if self.states else ()))
        return Bundle((*(x.spec for x in body.carry), *(Spec((self.length, *y.shape), y.dtype) for y in stacked)))

    def meaning(self, *operands):
        carry, xs, shared = self.parts(operands)
        stacked_specs = self.infer(*(Spec(np.shape(x), x.dtype) for x in operands)).specs[len(carry) :]
        stacked = [np.empty(spec.shape, spec.dtype) for spec in stacked_specs]
        count = len(self.body.ys)
        for i in self.rounds:
            for out, x in zip(stacked[count:], carry):
                out[i] = x
            results = self.body.meaning((*carry, *(x[i] for x in xs), *shared))
            carry, ys = results[: len(carry)], results[len(carry) :]
            for out, y in zip(stacked, ys):
                out[i] = y
        return (*(np.array(x) for x in carry), *stacked)

    # -- gradient -------------------------------------------------------------------------------------------------
    def grad(self, node, g):
        """Build a loop in the other direction that recomputes each round from its stored state."""
        body = self.body
        carry, _, shared = self.parts(node.operands)
        with_states = node if self.states else apply(replace(self, states=True), *node.operands)
        states = items(with_states)[len(carry) + len(body.ys) :]
        to_last, to_ys = g[: len(carry)], g[len(carry) : len(carry) + len(body.ys)]
        to_states = g[len(carry) + len(body.ys) :] or [zeros_like(s) for s in states]
        back = gradient_body(body)
        totals = [zeros_like(x) for x in shared]
        initial = [*select_floats(body.carry, to_last), *select_floats(body.shared, totals)]
        rows = [
            *states,
            *self.parts(node.operands)[1],
            *select_floats(body.ys, to_ys),
            *select_floats(body.carry, to_states),
        ]
        gradients = items(apply(Loop(back, self.length, not self.backward), *initial, *rows, *shared))
        count = len(select_floats(body.carry, to_last))
        to_shared, to_rows = gradients[count : len(initial)], gradients[len(initial) :]
        return (
            *align_floats(body.carry, gradients[:count]),
            *align_floats(body.xs, to_rows),
            *align_floats(body.shared, to_shared),
        )


def gradient_body(body: Body) -> Body:
    """Return the body of the gradient: from the gradient of a round's final state to that of its initial state."""
    to_next = [Var(x.shape, x.dtype, f"to_{x.name}") for x in select_floats(body.carry, body.carry)]
    totals = [Var(x.shape, x.dtype, f"total_{x.name}") for x in select_floats(body.shared, body.shared)]
    to_ys = [Var(y.shape, y.dtype, f"to_y{i}") for i, y in enumerate(select_floats(body.ys, body.ys))]
    to_states = [Var(x.shape, x.dtype, f"to_state_{x.name}") for x in select_floats(body.carry, body.carry)]
    results = [*select_floats(body.next, body.next), *select_floats(body.ys, body.ys)]
    sources = [
        *select_floats(body.carry, body.carry),
        *select_floats(body.xs, body.xs),
        *select_floats(body.shared, body.shared),
    ]
    gradients = pullback(results, [*to_next, *to_ys], sources)
    count = len(to_next)
    to_carry = [a + b for a, b in zip(gradients[:count], to_states)]
    rows, alike = gradients[count : len(gradients) - len(totals)], gradients[len(gradients) - len(totals) :]
    after = (*to_carry, *(a + b for a, b in zip(totals, alike)))
    return Body((*to_next, *totals), (*body.carry, *body.xs, *to_ys, *to_states), body.shared, after, tuple(rows))


def select_floats(of: Sequence[Node], values: Sequence[Any]) -> list[Any]:
    """Return those of `values` whose counterpart in `of` is a float or complex number."""
    return [value for x, value in zip(of, values) if x.dtype.kind in "fc"]


def align_floats(of: Sequence[Node], values: Sequence[Node]) -> list[Node | None]:
    """Return `values`, one for each float or complex number of `of`, with None for the others."""
    rest = iter(values)
    return [next(rest) if x.dtype.kind in "fc" else None for x in of]
