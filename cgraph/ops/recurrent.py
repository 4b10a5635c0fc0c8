"""Steps of recurrent networks: plain, LSTM, GRU. Weights are ``[inputs, gates * hidden]``, gates side by side."""

from typing import Any

from cgraph.ir.graph import Node, public
from cgraph.ops.activation import sigmoid
from cgraph.ops.elementary import tanh
from cgraph.ops.linear import matmul
from cgraph.ops.slicing import split


@public
def rnn_cell(x: Any, h: Any, w: Any, u: Any, b: Any) -> Node:
    """Return the state after one step of a plain recurrent network, ``tanh(x @ w + h @ u + b)``.

    Parameters
        x: ``[n, inputs]``
        h: the state before, ``[n, hidden]``
        w, u, b: ``[inputs, hidden]``, ``[hidden, hidden]``, ``[hidden]``
    """
    return tanh(matmul(x, w) + matmul(h, u) + b)


@public
def lstm_cell(x: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> tuple[Node, Node]:
    """Return the state h and the cell c after one step of an LSTM.

    ``i, f, g, o = split(x @ w + h @ u + b)``, ``c' = sigmoid(f) * c + sigmoid(i) * tanh(g)``,
    ``h' = sigmoid(o) * tanh(c')``.

    Parameters
        x: ``[n, inputs]``
        h, c: ``[n, hidden]``
        w, u, b: ``[inputs, 4 * hidden]``, ``[hidden, 4 * hidden]``, ``[4 * hidden]``
    Source
        Hochreiter and Schmidhuber 1997; with forget gates, Gers et al. 2000
    """
    i, f, g, o = split(matmul(x, w) + matmul(h, u) + b, 4, -1)
    after = sigmoid(f) * c + sigmoid(i) * tanh(g)
    return sigmoid(o) * tanh(after), after


@public
def gru_cell(x: Any, h: Any, w: Any, u: Any, b: Any, b_hidden: Any = 0.0) -> Node:
    """Return the state after one step of a GRU.

    ``z = sigmoid(x @ wz + h @ uz + bz)``, ``r = sigmoid(x @ wr + h @ ur + br)``,
    ``n = tanh(x @ wn + bn + r * (h @ un + b_hidden))``, ``h' = (1 - z) * n + z * h``.

    Parameters
        x: ``[n, inputs]``
        h: ``[n, hidden]``
        w, u, b: ``[inputs, 3 * hidden]``, ``[hidden, 3 * hidden]``, ``[3 * hidden]``, in the order z, r, n
        b_hidden: ``[hidden]``, inside the reset of the third gate
    Source
        Cho et al. 2014, arXiv:1406.1078
    """
    xz, xr, xn = split(matmul(x, w) + b, 3, -1)
    hz, hr, hn = split(matmul(h, u), 3, -1)
    z, r = sigmoid(xz + hz), sigmoid(xr + hr)
    return (1.0 - z) * tanh(xn + r * (hn + b_hidden)) + z * h
