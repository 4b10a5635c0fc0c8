"""Arenas are as large as the largest program needs, used again, and forget programs that are gone."""

from weakref import ref

from cgraph.storage.shared_arenas import SharedArena, SharedArenas


class Program:
    """Something that weak references can hold."""


def test_an_idle_arena_is_taken_again_and_a_busy_one_is_not():
    arenas = SharedArenas()
    arenas.need(100)
    first, second = arenas.take(), arenas.take()
    assert first is not second and first.memory.nbytes == 100
    arenas.give(first)
    assert arenas.take() is first


def test_small_arenas_are_dropped_once_a_program_needs_more():
    arenas = SharedArenas()
    arenas.need(100)
    busy, idle = arenas.take(), arenas.take()
    arenas.give(idle)
    arenas.need(60)
    assert arenas.nbytes == 100 and arenas.take() is idle
    arenas.give(idle)
    arenas.need(200)
    assert not arenas._idle, "their memory is free at once"
    arenas.give(busy)
    large = arenas.take()
    assert large not in (busy, idle) and large.memory.nbytes == 200


def test_instances_of_programs_that_are_gone_are_dropped():
    arenas, lasting, gone = SharedArenas(), Program(), Program()
    room, other = arenas.take(), arenas.take()
    for arena in (room, other):
        arena.instances = {ref(lasting): "lasting", ref(gone): "gone"}
    arenas.give(other)
    del gone
    arenas.give(room)
    assert list(room.instances.values()) == ["lasting"] and len(other.instances) == 2
    arenas.sweep()
    assert list(other.instances.values()) == ["lasting"] and SharedArena(8).last is None


def test_all_programs_that_are_gone_are_dropped_from_all_idle_arenas_at_once():
    arenas, programs = SharedArenas(), [Program() for _ in range(5)]
    rooms = [arenas.take(), arenas.take()]
    for arena in rooms:
        arena.instances = {ref(x): i for i, x in enumerate(programs)}
        arenas.give(arena)
    del programs[2:], programs[0]
    arenas.sweep()
    assert [list(arena.instances.values()) for arena in rooms] == [[1], [1]]
    assert [x() for x in rooms[0].instances] == programs
