"""What a traced function cannot do is refused with the user's file and line and the way out."""

import re

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


def doubled(x):
    return x * 2


def turned(x):
    return (x * 1j).sum()


def titled(x):
    return "title"


TEXTS = [
    (lambda: cg.grad(doubled)(X), "<grad of doubled>: the function returns multiply float64[2,3]; return one number, "
     "such as its sum"),
    (lambda: cg.hessian(doubled)(X), "<grad of doubled>: the function returns multiply float64[2,3]; return one "
     "number, such as its sum"),
    (lambda: cg.value_and_grad(turned)(X), "<value_and_grad of turned>: the function returns sum complex128[]; return "
     "a float, such as np.real(y)"),
    (lambda: cg.value_and_grad(titled)(X), "<value_and_grad of titled>: the function returns 'title', which is not "
     "one traced float; return one number that depends on the arguments, or pass has_aux=True and return a pair"),
    (lambda: cg.grad(doubled, has_aux=True)(X), "<grad of doubled>: with has_aux the function returns a pair. Return "
     "(value, others)"),
    (lambda: cg.grad(doubled, (0, 1))(X), "argnums has 1, and 1 arguments are passed by position. Pass this one by "
     "position, too"),
    (lambda: cg.grad(doubled)(np.arange(3)), "the gradient with respect to int64[3] is not defined: its elements are "
     "not floats; convert the argument with astype(float), or leave it out of argnums"),
    (lambda: cg.grad(doubled)("title"), "the gradient with respect to 'title' of str is not defined; pass it in an "
     "argument that argnums does not name"),
    (lambda: cg.jacobian(turned)(X), "<jacobian of turned>: the function returns sum complex128[]; return floats, "
     "such as np.real(y)"),
    (lambda: cg.jacobian(titled)(X), "<jacobian of titled>: the function returns 'title', which is not a traced "
     "array; return arrays that depend on the arguments"),
    (lambda: cg.vmap(doubled, (0, 0))(X), "in_axes has 2 axes for 1 arguments; pass one for each"),
    (lambda: cg.vmap(doubled, out_axes=None)(X), "out_axes has None, and a result has examples along some axis; pass "
     "its number"),
    (lambda: cg.vmap(doubled, ({"a": 0},))(X), "in_axes has {'a': 0}, which does not fit the arrays there; pass one "
     "axis for each"),
    (lambda: cg.vmap(lambda x, y: x, (0, 1))(X, X), "arguments have [2, 3] examples; pass equally many, or None in "
     "in_axes for a shared one"),
    (lambda: cg.vmap(3), "vmap takes a function, not 3; pass a function of one example"),
    (lambda: cg.jit(lambda x: np.copyto(x, x * 1j))(X), "np.copyto does not copy complex128 to x float64[2,3] with "
     "casting='same_kind'; use astype first"),
    (lambda: cg.jit(lambda x: np.hypot.at(x, [0], 1.0))(X), "np.hypot.at has no meaning for nodes; use one of "
     "np.add.at, np.subtract.at, np.multiply.at, np.divide.at, np.power.at, np.minimum.at, np.maximum.at"),
    (lambda: cg.jit(lambda x: np.fill_diagonal(x, 1, wrap=True))(X), "np.fill_diagonal takes a matrix, or an array of "
     "equal lengths, without wrap=True; not x float64[2,3]"),
    (lambda: cg.jit(lambda x: np.put(x, [0], 1, "wrap"))(X), "np.put has no mode='wrap' for nodes; use positions % "
     "x.size, or np.clip of them"),
]  # fmt: skip


@pytest.mark.parametrize(("act", "says"), TEXTS, ids=[says[:40] for _, says in TEXTS])
def test_a_text_has_the_function_the_numbers_and_the_way_out(act, says):
    with pytest.raises(CgraphError) as caught:
        act()
    assert re.fullmatch(r"(\w+ at test_refusals\.py:\d+: )?" + re.escape(says), str(caught.value)), caught.value
