"""Planned bodies: addresses of the body become those outside it, by identity; the state is copied where it must be."""

from cgraph.ir.spec import Bundle, Spec
from cgraph.ir.work import Part
from cgraph.kernels.kernel import ARENA, Pointer, View, contiguous
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.target import host_target
from cgraph.ops.leaf import Var
from cgraph.ops.physical.planned_body import BodyPlaces, PlannedBody, copies, place_of, placed

X, Y = Var((2, 3), "float32", "x"), Var((3,), "float64", "y")
ROOM = contiguous(Pointer("outside", 64), (4096,), "u1")
PLACES = BodyPlaces.of(ROOM, [(X, View(Pointer("rows", 8), (2, 3), (12, 4), "f4"))])


def test_places_of_values_are_in_c_order_of_their_dtype():
    assert place_of(X, X.spec) == View(Pointer(X), (2, 3), (12, 4), "f4")
    assert place_of("y", Y.spec) == View(Pointer("y"), (3,), (8,), "f8")
    assert not isinstance(X.spec, Bundle) and place_of("s", Spec((), X.dtype)).strides == ()


def test_addresses_of_vars_and_of_the_arena_move_and_others_stay():
    assert PLACES.pointer(Pointer(X, 4)) == Pointer("rows", 12)
    assert PLACES.pointer(Pointer(ARENA, 128)) == Pointer("outside", 192)
    for other in (Pointer(Y, 4), Pointer("rows", 4)):
        assert PLACES.pointer(other) is other
    alone = BodyPlaces.of(None, [(X, ROOM)])
    assert alone.pointer(Pointer(ARENA, 8)) == Pointer(ARENA, 8)


def test_views_and_calls_move_with_their_addresses():
    view = View(Pointer(ARENA, 16), (3,), (-8,), "f8")
    assert PLACES.view(view) == View(Pointer("outside", 80), (3,), (-8,), "f8")
    target = host_target()
    (call,) = copy_calls(target, place_of(Y, Y.spec), View(Pointer(ARENA, 16), (3,), (8,), "f8"))
    moved = PLACES.call(call)
    assert (moved.kernel, moved.tasks, moved.chunk) == (call.kernel, call.tasks, call.chunk)
    pairs = [(a, b) for a, b in zip(call.args, moved.args) if a != b]
    assert pairs == [(Pointer(ARENA, 16), Pointer("outside", 80))]
    (part,) = placed([Part("step", [call], [view])], PLACES)
    assert part.label == "step" and part.calls == [moved] and part.dead == [PLACES.view(view)]


def test_only_a_state_that_no_step_wrote_in_place_is_copied():
    target = host_target()
    elsewhere = View(Pointer(ARENA, 64), (2, 3), (12, 4), "f4")
    body = PlannedBody((), 128, (), ((X, elsewhere), (Y, place_of(Y, Y.spec))), None)
    calls = body.state_calls(target)
    assert calls == copies(target, [(place_of(X, X.spec), elsewhere)]) and len(calls) == 1
    assert list(body.parts()) == []


def test_parts_of_all_steps_come_in_their_order():
    class Step:
        def __init__(self, name):
            self.name = name

        def parts(self):
            yield Part(self.name, [])
            yield Part(f"{self.name} again", [])

    body = PlannedBody((Step("first"), Step("second")), 0, (), (), None)
    assert [p.label for p in body.parts()] == ["first", "first again", "second", "second again"]
