"""Device memory goes back with its last reference, and an allocation that fails gives nothing back."""

import pytest

from cgraph.engine.cuda.device import Allocation, LaunchError
from cgraph.errors import EngineError


class Store:
    """Memory by address. Changes: allocations come and go."""

    def __init__(self, full=False):
        self.full, self.taken, self.freed = full, [], []

    def take(self, nbytes, watched=True):
        if self.full:
            raise EngineError("no memory left")
        self.taken.append((nbytes, watched))
        return 4096 * (len(self.taken) - 1)  # the first is at 0, an address as any other

    def free(self, address):
        self.freed.append(address)


def test_memory_goes_back_once_with_the_last_reference():
    store = Store()
    first, second = Allocation(store, 100), Allocation(store, 200, False)
    assert store.taken == [(100, True), (200, False)]
    assert (first.address, first.nbytes, first.device) == (0, 100, store) and second.address == 4096
    other = first
    del first
    assert store.freed == []
    del other
    assert store.freed == [0]
    del second
    assert store.freed == [0, 4096]


def test_an_allocation_that_fails_frees_nothing():
    store = Store(full=True)
    with pytest.raises(EngineError, match="no memory left"):
        Allocation(store, 8)
    assert store.freed == []


def test_a_launch_error_names_its_row():
    error = LaunchError(3, "too many threads")
    assert isinstance(error, EngineError) and (error.row, str(error)) == (3, "too many threads")
