"""Whatever a public function is given, it gives nodes or refuses in its own name: no error from inside is seen."""

import inspect
import random

import numpy as np
import pytest

import cgraph as cg
from cgraph import CgraphError
from cgraph.ir.graph import OPS

OTHERS = ("gradient", "jvp", "hessian_vector_product", "pullback", "Const", "Var", "compile_sizes")
COMPUTE = ("eval", "item")
ODD = (
    lambda: cg.Var((3, 4), "float64", "x"),
    lambda: cg.Var((2, 4, 6, 6)),
    lambda: cg.Var((0, 4)),
    lambda: cg.Var((), "int8"),
    lambda: cg.Var((3, 3), "complex64"),
    lambda: cg.Var((4,), "bool"),
    *(lambda x=x: x for x in (0, 1, -1, 2**63, 10**30, 0.5, float("nan"), float("inf"), 1j, None, True)),
    *(lambda x=x: x for x in ("a", "float32", b"a", (), (0, 1), (-1,), [[1], [1, 2]], [None], {}, {"a": 1}, {1, 2})),
    *(lambda x=x: x for x in (object(), int, np.sin, ..., np.zeros((3, 4)), np.zeros(0), np.array(3), np.array("a"))),
    *(lambda x=x: x for x in (np.array([None]), np.zeros(2, ">f4"))),
    lambda: iter([1, 2]),
    lambda: lambda *xs: xs[0],
    lambda: [cg.Var((3, 4)), cg.Var((3, 4))],
)


def arguments(function, draw):
    """Odd ones, as many as it can be given."""
    args, named = [], {}
    for p in inspect.signature(function).parameters.values():
        if p.kind == p.VAR_POSITIONAL:
            args += [draw.choice(ODD)() for _ in range(2)]
        elif p.kind == p.KEYWORD_ONLY or p.default is not p.empty:
            named |= {p.name: draw.choice(ODD)()} if draw.random() < 0.4 else {}
        elif p.kind != p.VAR_KEYWORD:
            args.append(draw.choice(ODD[:1] * len(ODD) + ODD)())
    return args, named


@pytest.mark.filterwarnings("ignore")  # NumPy's, of what is converted
@pytest.mark.parametrize("name", [*(x for x in OPS if x not in COMPUTE), *OTHERS])
def test_what_is_no_argument_is_refused_by_name(name):
    function, draw = getattr(cg, name), random.Random(name)
    for _ in range(40):
        args, named = arguments(function, draw)
        try:
            function(*args, **named)
        except CgraphError as error:
            assert str(error)


def test_what_a_users_function_raises_is_left_as_it_is():
    def broken(*_):
        raise ValueError("mine")

    x = cg.Var((3,))
    for act in (lambda: cg.scan(broken, x, length=2), lambda: cg.sin(Broken()), lambda: x + Broken()):
        with pytest.raises(ValueError, match="^mine$") as found:
            act()
        assert not isinstance(found.value, CgraphError)


class Broken:
    """No array, though it says so."""

    def __array__(self, dtype=None, copy=None):
        raise ValueError("mine")


def test_what_is_missing_is_pythons_own_error():
    with pytest.raises(TypeError, match=r"max_pool2d\(\) missing") as found:
        cg.max_pool2d(cg.Var((1, 1, 2, 2)))
    assert not isinstance(found.value, CgraphError)
