"""Memory that several programs run in by turns: as much as the largest needs, for as many runs as go on at once."""

from typing import Any
from weakref import ref

import numpy as np

from cgraph.system.alignment import aligned_memory


class SharedArena:
    """Memory, and the instances in it. Changes: who ran last, whose values are the ones that are there.

    Fields
        memory: bytes
        instances: the instance of each program
        last: the program that ran last
    """

    def __init__(self, nbytes: int) -> None:
        self.memory: np.ndarray = aligned_memory(nbytes)
        self.instances: dict[ref[Any], Any] = {}
        self.last: ref[Any] | None = None

    def sweep(self) -> None:
        """Drop the instances of programs that are gone: no function called as each goes would hear an interrupt."""
        for program in list(self.instances):
            if program() is None:
                self.instances.pop(program, None)


class SharedArenas:
    """Memory for programs. Changes: pieces are made when none is idle, larger ones when a program needs more.

    Fields
        nbytes: of a piece of memory: what the largest program needs
    """

    def __init__(self) -> None:
        self.nbytes = 0
        self._idle: list[SharedArena] = []

    def need(self, nbytes: int) -> None:
        """A program of so many bytes runs here, too."""
        if nbytes > self.nbytes:
            self.nbytes = nbytes
            self._idle = []

    def take(self) -> SharedArena:
        """An idle piece of memory, or a new one."""
        while True:
            try:
                arena = self._idle.pop()
            except IndexError:
                return SharedArena(self.nbytes)
            if arena.memory.nbytes >= self.nbytes:
                return arena

    def give(self, room: SharedArena) -> None:
        room.sweep()
        self._idle.append(room)

    def sweep(self) -> None:
        """A program is gone."""
        for room in list(self._idle):
            room.sweep()
