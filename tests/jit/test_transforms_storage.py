"""Bytes behind traced arrays: paths of views there and back, assignment through them, relatives that become stale."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.errors import GraphError
from cgraph.transforms.storage import Storage, follow, is_exact, path_between, put

X = np.arange(24.0).reshape(2, 3, 4)
VIEWS = {
    "a slice": lambda x: x[1:, ::2],
    "backwards": lambda x: x[:, ::-1, 1:3],
    "turned": lambda x: x.transpose((1, 2, 0)),
    "reshaped": lambda x: x.reshape((6, 4)),
    "a row of a turned slice": lambda x: x[:, 1:].transpose((2, 0, 1))[3],
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_path_leads_to_the_view_and_a_value_goes_back_along_it(name):
    x = cg.Var(X.shape, "float64")
    path = path_between(x, VIEWS[name](x))
    again = follow(x, path)
    copy = X.copy()
    view = VIEWS[name](copy)
    new = -1 - np.arange(view.size, dtype="f8").reshape(view.shape)
    got, written = evaluate((again, put(x, path, cg.Const(new))), {x: X})
    np.testing.assert_array_equal(got, view)
    view[...] = new
    np.testing.assert_array_equal(written, copy)


def test_what_is_computed_is_no_view_and_a_value_is_its_own():
    x, y = cg.Var((3,)), cg.Var((3,))
    assert path_between(x, x) == () and path_between(x, x + 1) is None
    assert path_between(x, y[1:]) is None and path_between(x, (x * 2)[1:]) is None
    assert put(x, (), y) is y and follow(x, ()) is x


def test_a_broadcast_view_is_read_only():
    x = cg.Var((1, 3), "float64")
    wide = cg.broadcast_to(x, (2, 3))
    with pytest.raises(GraphError, match="read-only"):
        put(x, path_between(x, wide), cg.Const(np.zeros((2, 3))))


def test_reshape_and_ravel_may_copy_and_other_views_do_not():
    x = cg.Var((2, 3))
    turned, flat = path_between(x, x.transpose((1, 0))), path_between(x, x.reshape((6,)))
    assert is_exact(flat, "swapaxes") and is_exact(turned, "reshape") and is_exact((), "ravel")
    assert not is_exact(flat, "reshape") and not is_exact((*turned, *flat), "ravel")


def test_an_assignment_counts_and_makes_all_relatives_stale_but_not_itself():
    nodes = [cg.Var((2,), name=n) for n in "abcd"]
    a, b, c, alone = (Storage(n, None) for n in nodes)
    a.relate(b)
    b.relate(c)
    a.assign((), nodes[3], "line 7")
    assert a.value() is nodes[3] and (a.version, b.version) == (1, 0)
    assert alone.value() is nodes[3] and alone.stale == ""
    for other in (b, c):
        with pytest.raises(GraphError, match=r"^line 7 assigns .*Use \.copy\(\)"):
            other.value()
    with pytest.raises(GraphError, match="line 7"):
        b.assign((), nodes[0], "line 8")
    assert b.version == 0 and a.stale == ""
