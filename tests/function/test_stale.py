"""Nothing stale is read: neither what another run may be writing, nor memory that a failed binding left behind."""

from typing import Any

import numpy as np
import pytest

import cgraph as cg
from tests.support.injection import Lines, events
from tests.support.transactions import var


@pytest.mark.parametrize("others", [0, 1])
def test_a_var_that_another_run_is_writing_counts_as_changed_each_time(others):
    x, rest = var(8, 1.0), [var(8, 2.0) for _ in range(others)]
    read = cg.compile([cg.sort(x) * 2, *(cg.sort(y) for y in rest)])
    read()
    value = x.cell.value
    value.version = None  # as it is while a run writes into the array
    for number in (5.0, 6.0, 7.0):
        value.array[...] = number
        assert (read()[0] == 2 * number).all()
    value.renew()
    value.array[...] = 8.0
    assert (read()[0] == 16).all()


def bound_elsewhere(step: cg.Function) -> None:
    """Bind copies of the Vars that are updated, as who times a run does."""
    with step.instance_for((), {}):
        pass


@pytest.mark.parametrize("engine", ["cpu", "cuda-sim"])
def test_after_a_binding_that_failed_half_way_the_next_call_binds_everything(engine):
    cells = [var(16, float(i)) for i in range(3)]
    step = cg.compile([cg.sum(cells[0])], updates={x: x + 1 for x in cells}, engine=engine)
    step()
    count = len(events(lambda: bound_elsewhere(step)))
    each = 1 if engine == "cpu" else 5
    for at in range(1, count + 1, each):
        step()
        before = [x.value for x in cells]
        Lines(at).during(lambda: bound_elsewhere(step))
        total: Any = step()
        assert total[0] == before[0].sum()
        for x, old in zip(cells, before):
            np.testing.assert_array_equal(x.value, old + 1, err_msg=f"cut off at event {at}")


def test_a_var_that_cannot_be_bound_leaves_the_memory_of_the_others_to_the_next_call(monkeypatch):
    cells = [var(16, float(i)) for i in range(3)]
    read = cg.compile([cg.sort(x) for x in cells])
    read()
    instance, real, moved = read._idle[0].instance, type(read._idle[0].instance)._move, []

    def failing(self: Any, relocation: Any, address: int) -> None:
        moved.append(relocation)
        if len(moved) == 2:
            raise MemoryError
        real(self, relocation, address)

    old = [x.cell.value for x in cells]
    for x in cells:
        x.assign(np.full(16, 50.0))
    with monkeypatch.context() as patched:
        patched.setattr(type(instance), "_move", failing)
        with pytest.raises(MemoryError):
            read()
    for x, value in zip(cells, old):
        x.cell.value = value  # the very values of the run before
        value.array[...] += 1
        value.renew()
    assert [y[0] for y in read()] == [1, 2, 3]
