"""Views of values that were placed: bytes of an owner move with it, all others stay."""

import numpy as np

import cgraph as cg
from cgraph.kernels.kernel import ARENA, Pointer, View
from cgraph.memory.views import Places


def test_views_of_an_owner_lie_in_the_arena_and_others_where_they_are():
    x, y, constant = cg.Var((2, 3)), cg.Var((4,)), np.zeros(4, np.float32)
    inside = View(Pointer(y, 8), (3, 2), (4, 12), "f4")
    views = {
        y: inside,
        x: View(Pointer(x, 4), (1,), (4,), "f4"),
        y + 1: View(Pointer(constant, 4), (2,), (4,), "f4"),
        y + 2: View(Pointer(ARENA, 16), (2,), (4,), "f4"),
        y + 3: (inside, View(Pointer(x), (), (), "f8")),
    }
    places = Places(views, {y: 128})
    assert list(places) == list(views) and len(places) == 5
    own, *others, both = (places[node] for node in views)
    assert (own.at.base, own.at.offset, own.shape, own.strides, own.dtype) == (ARENA, 136, (3, 2), (4, 12), "f4")
    assert others == [view for view in views.values() if view is not inside][:3]
    assert both[0].at.base is ARENA and both[0].at.offset == 136 and both[1] is views[y + 3][1]
