"""What a traced function cannot do is refused with the user's file and line and the way out."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import CgraphError, GraphError

X = np.arange(6.0).reshape(2, 3)


def looped(x):
    while x.sum() < 3:
        x = x + 1
    return x


@pytest.mark.parametrize(
    "f, words",
    [
        (lambda x, n: x if x.sum() > 0 else -x, r"if, while.*np\.where or cg\.cond"),
        (lambda x, n: looped(x), r"if, while.*cg\.while_loop"),
        (lambda x, n: x[0, 0] > 0 and x[0, 1] > 0, "and, or"),
        (lambda x, n: float(x[0, 0]), r"float\(\) needs a number"),
        (lambda x, n: int(x[0, 0]), r"int\(\) needs"),
        (lambda x, n: complex(x[0, 0]), r"complex\(\) needs"),
        (lambda x, n: x.sum().item(), "item"),
        (lambda x, n: x.tolist(), "tolist"),
        (lambda x, n: f"{x[0, 0]:.2f}", "format"),
        (lambda x, n: [x for _ in range(n)], "static_argnames="),
        (lambda x, n: x[:n], "integer"),
        (lambda x, n: np.zeros(n), "integer"),
        (lambda x, n: np.array([x[0], x[1]]), r"np\.stack"),
        (lambda x, n: np.asarray(x), "values"),
        (lambda x, n: x[x > 2], r"cg\.where"),
        (lambda x, n: np.unique(x), "size="),
    ],
)
def test_what_needs_a_value_names_the_line_and_the_way_out(f, words):
    with pytest.raises(CgraphError, match=words) as caught:
        cg.jit(f)(X, 2)
    assert "test_refusals.py:" in str(caught.value)


def test_an_array_of_numpy_does_not_take_traced_values():
    def f(x):
        out = np.zeros((2, 3))
        out[0] = x[0]
        return out

    with pytest.raises(CgraphError, match=r"np\.zeros_like\(x\) or cg\.numpy\.zeros"):
        cg.jit(f)(X)


def test_a_tracer_that_has_left_its_function_is_refused():
    leaked = []
    cg.jit(lambda x: leaked.append(x) or x)(X)
    with pytest.raises(GraphError, match="after its function has returned"):
        leaked[0] + 1


def test_a_stream_from_outside_is_refused():
    rng = cg.numpy.random.default_rng(0)
    with pytest.raises(GraphError, match="Pass the stream as an argument"):
        cg.jit(lambda x: x + rng.random())(X)


def test_a_traced_array_prints_as_its_node():
    texts = []
    cg.jit(lambda x: texts.append(f"{x} {x.sum()!r}") or x)(X)
    assert texts[0].startswith("<traced <x float64[2,3] at test_refusals.py:")
