"""Instances that exchange rows: each port's function gets its own rows, and a loop's rows run as often as it says."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.cpu.make_code import code_of
from cgraph.engine.cpu.streamed_rows import RowsInstance
from cgraph.ir.work import Part
from cgraph.kernels.callback import port_call
from cgraph.kernels.kernel import ARENA, Pointer, contiguous
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.target import host_target
from cgraph.record import replace
from tests.support.planned import planned

X = cg.Var((6, 4), name="x")
PLAN = planned(X + 1)
DONE = np.zeros(1, np.int64)


def view(offset, rows):
    return contiguous(Pointer(ARENA, offset), (rows, 4), "f4")


def instance(*steps):
    """An instance of a program of these steps, none of which writes a Var."""
    code = replace(code_of([*steps, []], PLAN), first_write=len(steps))
    return CpuEngine(threads=1).program(code).instance()


def part(calls, times=1):
    return Part("rows", calls, times=times)


FILL = port_call("source", view(0, 2), fills=True)
READ = port_call("sink", view(32, 2), fills=False)
COPY = copy_calls(host_target(), view(32, 2), view(0, 2))


class Ends:
    """A source that counts upwards, and a sink. Changes: the rows that came."""

    def __init__(self):
        self.next, self.got, self.writeable = 0, [], []

    def fill(self, rows):
        self.next += 1
        rows[...] = self.next

    def read(self, rows):
        self.writeable.append(rows.flags.writeable)
        self.got.append(rows.copy())

    @property
    def ports(self):
        return {"source": self.fill, "sink": self.read}


def test_each_port_has_its_own_function_and_only_a_source_may_write():
    ends, run = Ends(), instance([part([FILL, *COPY, READ])])
    assert isinstance(run, RowsInstance)
    run.bind(ends.ports, {}, DONE)
    run.run()
    assert [rows.tolist() for rows in ends.got] == [[[1.0] * 4] * 2] and ends.writeable == [False]


def test_only_the_rows_of_a_loop_run_again():
    ends = Ends()
    run = instance([part([FILL])], [part([FILL, *COPY], 3), part([READ], 3)], [part([FILL, *COPY, READ])])
    run.bind(ends.ports, {}, DONE)
    run.run()
    assert [rows[0, 0] for rows in ends.got] == [2, 3, 4, 5] and ends.next == 5


@pytest.mark.parametrize(
    "steps, filled, sunk", [((0,), 1, 0), ((1,), 3, 3), ((2,), 1, 1), ((0, 2), 2, 1), ((1, 2), 4, 4), ((0, 1), 4, 3)]
)
def test_some_steps_run_their_part_of_the_loop(steps, filled, sunk):
    ends = Ends()
    run = instance([part([FILL])], [part([FILL, *COPY], 3), part([READ], 3)], [part([FILL, *COPY, READ])])
    run.bind(ends.ports, {}, DONE)
    run.run(steps, write=False)
    assert (ends.next, len(ends.got)) == (filled, sunk)


def test_the_next_run_has_functions_of_its_own():
    first, second, run = Ends(), Ends(), instance([part([FILL, *COPY, READ])])
    for ends in (first, second):
        run.bind(ends.ports, {}, DONE)
        run.run()
    assert (first.next, second.next) == (1, 1)
    with pytest.raises(KeyError, match="source"):  # those of the last run are gone
        run.run()


def test_an_error_of_a_source_ends_the_run_and_lets_its_functions_go():
    ends, run = Ends(), instance([part([FILL, *COPY, READ], 5)])

    def fail(rows):
        if ends.next == 2:
            raise ValueError("no more rows")
        ends.fill(rows)

    run.bind({"source": fail, "sink": ends.read}, {}, DONE)
    with pytest.raises(ValueError, match="no more rows"):
        run.run()
    assert len(ends.got) == 2
    with pytest.raises(KeyError):
        run.run()
    run.bind(ends.ports, {}, DONE)
    run.run()
    assert ends.next == 2 + 5


def test_rows_are_exchanged_in_memory_that_others_share_too():
    ends, own = Ends(), instance([part([FILL, *COPY, READ])])
    memory = np.zeros(own.code.nbytes + 64, np.uint8)
    run = CpuEngine(threads=1).program(own.code).instance(memory)
    assert isinstance(run, RowsInstance) and np.shares_memory(run.arena, memory)
    run.bind(ends.ports, {}, DONE)
    run.run()
    assert memory[:32].view("f4").tolist() == [1] * 8 and ends.got[0].tolist() == [[1] * 4] * 2
