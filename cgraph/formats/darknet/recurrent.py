"""Recurrent layers of Darknet. Their state is a Var that starts at 0; an update edge stores it between runs."""

from collections.abc import Callable

import numpy as np

from cgraph.formats.darknet.config import Section
from cgraph.formats.darknet.layers import Net, activate, layer, op, rows_of, take_connected
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Var

NODES, NODES_PER_STEP = 60, 25  # nodes of the matrices of a gru, and of one step: it has the most


def over_time(net: Net, s: Section, x: Node, size: int, step: Callable[[Node, Node], tuple[Node, Node]]) -> Node:
    """Apply `step` (input, state -> result, state) to each time step; rows are ``[steps * batch]``."""
    net.allowance.spend(f"{net.steps} steps of [{s.kind}]", nodes=NODES + net.steps * NODES_PER_STEP)
    batch = x.shape[0] // net.steps
    net.allowance.spend(f"the state of [{s.kind}]", nbytes=2 * 4 * batch * size)
    start = Var((batch, size), "float32", f"{s.index}.{s.kind}.state").assign(np.zeros((batch, size), np.float32))
    state: Node = start
    results = []
    for t in range(net.steps):
        result, state = step(x[t * batch : (t + 1) * batch], state)
        results.append(result)
    net.updates[start] = state
    return op("concat", results, 0)


@layer("rnn")
def rnn(net: Net, s: Section, x: Node) -> Node:
    """state = f(W x + b) + f(U state + c); result = f(V state + d)."""
    x = rows_of(x)
    hidden, outputs, name = s.size("hidden", 1), s.size("output", 1), f"{s.index}.rnn"
    inner = take_connected(net, s, x.shape[1], hidden, f"{name}.input")
    past = take_connected(net, s, hidden, hidden, f"{name}.self")
    outer = take_connected(net, s, hidden, outputs, f"{name}.output")

    def step(v: Node, state: Node) -> tuple[Node, Node]:
        state = activate(s, inner(v)) + activate(s, past(state))
        return activate(s, outer(state)), state

    return over_time(net, s, x, hidden, step)


@layer("gru")
def gru(net: Net, s: Section, x: Node) -> Node:
    """z and r from input and state; state = z * state + (1 - z) * f(U x + W (r * state))."""
    x = rows_of(x)
    size, name = s.size("output", 1), f"{s.index}.gru"
    state_z, state_r, state_h = (take_connected(net, s, size, size, f"{name}.w{g}") for g in "zrh")
    input_z, input_r, input_h = (take_connected(net, s, x.shape[1], size, f"{name}.u{g}") for g in "zrh")
    last = "tanh" if s.integer("tanh", 0) else "sigmoid"

    def step(v: Node, state: Node) -> tuple[Node, Node]:
        z = op("sigmoid", input_z(v) + state_z(state))
        r = op("sigmoid", input_r(v) + state_r(state))
        state = z * state + (1.0 - z) * op(last, input_h(v) + state_h(r * state))
        return state, state

    return over_time(net, s, x, size, step)
