"""Words of calls that fail on a GPU: which row of the table is named."""

from types import SimpleNamespace

import numpy as np
import pytest

from cgraph.engine.cuda import program
from cgraph.engine.cuda.device import LaunchError
from cgraph.engine.cuda.program import SKIP, STOP_SYMBOL, CudaInstance, Stops
from cgraph.engine.cuda.segments import Segment
from cgraph.errors import EngineError
from cgraph.kernels.control import BEGIN, REPEAT
from cgraph.kernels.kernel import ARENA

TABLE = np.array([[0, 0], [0, 4], [0, 9], [0, 12]])  # where the arguments of each row begin


@pytest.mark.parametrize("positions", [[0], [3], [4], [8], [9, 11], [12], [2, 4, 9, 20], [0, 1, 4, 12]])
def test_each_word_belongs_to_the_row_whose_arguments_hold_its_address(monkeypatch, positions):
    words, left = {}, []
    queue = SimpleNamespace(
        fill=lambda address, nbytes, value: words.clear(),
        wait=lambda: [left.pop()() for _ in range(len(left))],
        download=lambda address, into: left.append(
            lambda there=dict(words): into.__setitem__(slice(None), [there.get(8 * i, 0) for i in range(len(into))])
        ),
    )
    monkeypatch.setattr(program, "Allocation", lambda *args, **options: SimpleNamespace(address=1 << 20))
    code = SimpleNamespace(
        relocations=[SimpleNamespace(symbol=STOP_SYMBOL, positions=np.array(positions))], table=TABLE
    )
    args = np.zeros(24, np.int64)
    stops = Stops(code, None, args, queue)
    rows = [max(r for r in range(len(TABLE)) if TABLE[r, 1] <= p) for p in positions]
    assert stops.rows.tolist() == sorted(set(rows)) and stops.first() is None
    for position, row in zip(positions, rows):
        words[args[position] - (1 << 20)] = 7
        assert stops.first() == (row, 7) and stops.first() is None


class LateQueue:
    """A queue whose copies to the host happen while it is waited for, as on a device."""

    def __init__(self, memory):
        self.memory, self.left = memory, []

    def download(self, address, room):
        self.left.append((address, room))

    def wait(self):
        for address, room in self.left:
            room[...] = self.memory[address : address + len(room)]
        self.left.clear()


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(
    "error, rows, words",
    [
        (LaunchError(0, "too large"), (2, 4, 5), "step 2: too large"),
        (LaunchError(1, "too large"), (2, 4, 5), "step 4: too large"),
        (LaunchError(2, "too large"), (2, 4, 5), "step 5: too large"),
        (EngineError("lost"), (2, 4, 5), "step 2 or one of 2 calls after it: lost"),
        (EngineError("lost"), (3,), "step 3: lost"),
    ],
)
def test_a_failed_segment_names_the_step_of_its_row_or_its_first_step(error, rows, words, check):
    """A launch that was refused knows its row in the segment; an error that comes later does not."""

    def fail(*args):
        raise error

    instance = object.__new__(CudaInstance)
    is_late = check and not isinstance(error, LaunchError)
    instance.queue = SimpleNamespace(run=(lambda table: None) if is_late else fail, wait=fail)
    instance.program = SimpleNamespace(graphs=False, check=check)
    instance.code = SimpleNamespace(labels=[f"step {i}" for i in range(6)], label_of=np.arange(6))
    with pytest.raises(EngineError, match=f"^{words}$"):
        instance._run_segment(Segment(np.zeros((len(rows), 5), np.int64), rows=rows))


@pytest.mark.parametrize("stopped", [None, (0, 1)])
def test_a_jump_reads_its_byte_once_the_copy_is_there_and_after_the_run_was_checked(stopped):
    """It is taken where the byte differs from the value, and not at all where a kernel has stopped the run."""
    memory = np.array([7, 0, 3], np.uint8)
    instance = object.__new__(CudaInstance)
    instance.queue, instance.stops = LateQueue(memory), SimpleNamespace(first=lambda: stopped)
    instance.code = SimpleNamespace(labels=["a step"], label_of=np.zeros(1, int))
    for address, value, taken in ((0, 7, False), (0, 3, True), (1, 0, False), (2, 0, True)):
        instance.args = np.array([99, address, value, 99], np.int64)
        segment = SimpleNamespace(jump=SKIP, words=slice(1, 3))
        if stopped is None:
            assert instance._jumps(segment) is taken
        else:
            with pytest.raises(Exception, match="a step"):
                instance._jumps(segment)
            assert not instance.queue.left


def stub(**fields) -> CudaInstance:
    """An instance with these fields alone."""
    instance = object.__new__(CudaInstance)
    for name, value in fields.items():
        setattr(instance, name, value)
    return instance


@pytest.mark.parametrize("graphs", [True, False])
@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("repeats", [True, False])
def test_launches_run_as_a_graph_unless_each_is_checked_or_a_loop_changes_them(graphs, check, repeats):
    ran = []
    instance = stub(
        program=SimpleNamespace(graphs=graphs, check=check),
        queue=SimpleNamespace(run=lambda table: ran.append("table"), wait=lambda: ran.append("wait")),
        graphs=SimpleNamespace(run=lambda segment, addresses: ran.append(addresses)), _bound={"a": 3, "b": 7},
    )  # fmt: skip
    instance._run_segment(Segment(np.zeros((2, 5), np.int64), rows=(0, 1), repeats=repeats))
    is_graph = graphs and not check and not repeats
    assert ran == [(3, 7) if is_graph else "table", *(["wait"] if check else [])]


def test_kernels_take_whole_groups_of_arguments_and_one_at_least():
    assert [program.round_words(count) for count in (0, 1, 8, 9, 16)] == [8, 8, 8, 16, 16]


def test_of_several_rows_that_failed_the_first_is_told():
    stops = object.__new__(Stops)
    stops.rows, stops.words = np.array([2, 5, 9]), np.zeros(3, np.int64)
    stops.memory = SimpleNamespace(address=0)
    stops.queue = SimpleNamespace(
        download=lambda at, words: words.__setitem__(slice(None), [0, 4, 6]), wait=lambda: None, fill=lambda *_: None
    )
    assert stops.first() == (5, 4)


@pytest.mark.parametrize("there", [(True, True), (True, False), (False, True), (False, False)])
def test_a_run_that_writes_first_values_has_a_word_that_no_value_has(monkeypatch, there):
    moved = []
    instance = stub(
        code=SimpleNamespace(variables=(), targets=(), updated=("a", "b")), program=SimpleNamespace(device=None),
        _done="before", _cell=lambda x: None, _move=lambda symbol, address: moved.append(address),
    )  # fmt: skip
    monkeypatch.setattr(program, "DeviceWord", lambda device: SimpleNamespace(memory=SimpleNamespace(address=64)))
    cells = {x: SimpleNamespace(is_there=is_there) for x, is_there in zip("ab", there)}
    instance.bind({}, cells, None)
    assert (instance._done == "before") == all(there) and moved == ([] if all(there) else [64])


def test_a_run_that_fails_half_way_leaves_the_old_values_of_all_vars():
    """Of `c` there is none; the others are those of copies that the run does not change."""

    def fail(parts):
        raise EngineError("lost")

    cells = {x: SimpleNamespace(is_there=x != "c", newer=None, await_device=lambda word: None) for x in "abc"}
    copies = {x: SimpleNamespace(writer=None) for x in "abc"}
    instance = stub(
        code=SimpleNamespace(updated=tuple("abc")), _cells=cells, _copy=copies.get, _old_copy=lambda x: f"old {x}",
        _done=None, queue=SimpleNamespace(runs_whole=False, wait=lambda: None), _run_segments=fail,
    )  # fmt: skip
    with pytest.raises(EngineError):
        instance._update([Segment(np.zeros((1, 5), np.int64), rows=(0,))])
    assert [cells[x].newer for x in "abc"] == ["old a", "old b", None]
    instance._run_segments = lambda parts: None
    instance._update([])
    assert [cells[x].newer for x in "abc"] == list(copies.values())


@pytest.mark.parametrize("runs_whole", [True, False])
@pytest.mark.parametrize("hosts", [(False,), (True,), (False, False), (True, False)])
def test_values_are_the_new_ones_at_once_only_where_one_native_call_writes_them(hosts, runs_whole):
    """A function on the host may fail, and others may not be reached."""
    seen = []
    cells = {x: SimpleNamespace(is_there=True, newer=None) for x in "ab"}
    copies = {x: SimpleNamespace(writer=None) for x in "ab"}
    queue = SimpleNamespace(runs_whole=runs_whole, wait=lambda: None)
    instance = stub(
        code=SimpleNamespace(updated=("a", "b")), _cells=cells, _copy=copies.get, _old_copy=lambda x: f"old {x}",
        _done=None, queue=queue,
        _run_segments=lambda parts: seen.append(([x.newer for x in cells.values()], copies["a"].writer)),
    )  # fmt: skip
    instance._update([Segment(np.zeros((1, 5), np.int64), "a function" if host else None, rows=(0,)) for host in hosts])
    is_one = runs_whole and hosts == (False,)
    assert seen == [(list(copies.values()), queue) if is_one else (["old a", "old b"], None)]
    assert [x.newer for x in cells.values()] == list(copies.values())
    assert all(copy.writer is None for copy in copies.values()) and all(x.done is None for x in cells.values())


def test_an_output_is_made_if_its_bytes_are_in_the_arena_or_in_a_var_that_is_written():
    first, second, other = object(), object(), object()
    views = {i: SimpleNamespace(at=SimpleNamespace(base=base)) for i, base in enumerate((ARENA, first, second, other))}
    assert [stub(views=views, _written=(first, second)).makes(i) for i in range(4)] == [True, True, True, False]
    assert [stub(views=views, _written=()).makes(i) for i in range(4)] == [True, False, False, False]


@pytest.mark.parametrize("rounds", [0, 1, 3])
@pytest.mark.parametrize("before", [0, 5])
def test_a_round_moves_every_address_of_a_loop(rounds, before):
    """`args`: other words, BEGIN's address of the words, the words of the loop with two addresses, and these."""
    args = np.full(before + 20, 77, np.int64)
    words, places = before + 2, (before + 15, before + 18)
    args[before] = args.ctypes.data + 8 * words
    args[words : words + 3] = 0, rounds, 2
    for i, (place, start, step) in enumerate(zip(places, (1000, 2000), (8, -16))):
        args[words + 3 + 3 * i : words + 6 + 3 * i] = args.ctypes.data + 8 * place, start, step
    begin = SimpleNamespace(jump=BEGIN, words=slice(before, before + 2))
    repeat = SimpleNamespace(jump=REPEAT, words=slice(words, words + 2))
    assert program.next_round(args, begin) is (rounds == 0)
    for number in range(rounds):
        assert args[words] == number and args[list(places)].tolist() == [1000 + 8 * number, 2000 - 16 * number]
        assert program.next_round(args, repeat) is (number + 1 < rounds)
    if rounds:
        assert args[list(places)].tolist() == [1000 + 8 * (rounds - 1), 2000 - 16 * (rounds - 1)]
    else:
        assert args[list(places)].tolist() == [77, 77]
    assert program.next_round(args, begin) is (rounds == 0) and args[words] == 0
