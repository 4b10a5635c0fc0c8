"""Segments run the rows of the table in the table's order, whatever jumps, host calls and limits lie between."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.make_code import code_of
from cgraph.engine.cuda.program import launch_rows, round_words
from cgraph.engine.cuda.segments import label_of, segments
from cgraph.ir.work import Part
from cgraph.kernels.control import BEGIN, REPEAT, SKIP
from cgraph.kernels.kernel import ARENA, Call, Callback, End, Kernel, Pointer, Repeat, Skip, marker_call
from tests.support.planned import planned

MOST_STEPS = 10_000
PLAN = planned(cg.Var((6, 4), name="x") + 1)


def block(rng: np.random.Generator, depth: int) -> list[Part]:
    """Parts of kernels (some without tasks), functions on the host, loops, and rows that are skipped or not."""
    parts: list[Part] = []
    for kind in rng.choice(["kernel", "kernel", "none", "host", "loop", "skip"], rng.integers(1, 5)):
        marker = {"loop": lambda: Repeat(int(rng.integers(0, 3))), "skip": lambda: Skip(1)}.get(kind)
        if marker is None:
            call = Call(Callback(lambda args: None, False, (None,) * 2, 1), (1, 2), 1)
            row = call if kind == "host" else Call(Kernel(str(rng.integers(3))), (5,), int(kind != "none"))
            parts.append(Part(kind, [row]))
        elif depth:
            of = marker()
            start = marker_call(of) if kind == "loop" else marker_call(of, Pointer(ARENA))
            parts += [Part("m", [start]), *block(rng, depth - 1), Part("m", [marker_call(End(of))])]
    return parts


class Jumps:
    """Which jumps are taken: loops have their rounds, a skip changes its mind each time. Changes: counts."""

    def __init__(self, code) -> None:
        self.code, self.rounds, self.skips = code, {}, 0

    def is_taken(self, row: int, kind: int) -> bool:
        if kind == SKIP:
            self.skips += 1
            return self.skips % 3 == 0
        begin = row if kind == BEGIN else next(to - 1 for n, r, to in self.code.jumps() if r == row)
        self.rounds[begin] = 0 if kind == BEGIN else self.rounds[begin] + 1
        end = next(to - 1 for n, r, to in self.code.jumps() if r == begin)
        goes_on = self.rounds[begin] < self.code.args[self.code.table[end, 1] + 1]
        return bool(goes_on) == (kind == REPEAT)


def ran_by_rows(code, steps) -> list[int]:
    """The rows with work, as they run."""
    jumps, targets, ran = Jumps(code), {row: (kind, to) for kind, row, to in code.jumps()}, []
    for step in steps:
        row = code.first_row[step]
        while row < code.first_row[step + 1]:
            kind, to = targets.get(int(row), (0, 0))
            if kind:
                row = to if jumps.is_taken(int(row), kind) else row + 1
                continue
            ran += [int(row)] if code.table[row, 2] else []
            row += 1
    return ran


def ran_by_segments(code, parts) -> list[int]:
    jumps, ran, number = Jumps(code), [], 0
    for _ in range(MOST_STEPS):
        if number == len(parts):
            return ran
        part = parts[number]
        if part.jump:
            number = part.target if jumps.is_taken(part.rows[0], part.jump) else number + 1
            continue
        if part.host is not None:
            (row,) = np.flatnonzero(code.table[:, 1] == part.words.start)
            assert code.kernels[code.table[row, 0]] is part.host
            assert part.words.stop - part.words.start == len(part.host.views)
        assert part.table[:, 0].tolist() == list(part.rows)
        ran += [int(row)] if part.host is not None else list(part.rows)
        number += 1
    raise AssertionError("the segments have no end")


@pytest.mark.parametrize("most", [1, 2, 100])
@pytest.mark.parametrize("seed", range(12))
def test_segments_run_the_same_rows_in_the_same_order(seed, most):
    rng = np.random.default_rng(seed)
    code = code_of([block(rng, depth) for depth in rng.permutation([0, 1, 2, 3, 0])], PLAN)
    rows = np.repeat(np.arange(len(code.table))[:, None], 5, 1)
    own = [range(first, last) for first, last in pairwise(code.first_row.tolist())]
    looping = {row for rows_of in own for row in rows_of if any(jump in rows_of for _, jump, _ in code.jumps())}
    for steps in ([0, 1, 2, 3, 4], [1, 3], [4, 2], [], [2, 2]):
        parts = segments(code, rows, steps, most)
        assert ran_by_segments(code, parts) == ran_by_rows(code, steps)
        launches = [x for x in parts if x.host is None and not x.jump]
        assert all(1 <= len(x.rows) <= most for x in launches)
        assert all(x.repeats == (x.rows[0] in looping) for x in launches)


def test_rows_without_jumps_are_as_few_segments_as_the_host_allows():
    host = Call(Callback(lambda args: None, False, (None,) * 2, 1), (1, 2), 1)
    kernel, none = Call(Kernel("k"), (1,), 4), Call(Kernel("k"), (1,), 0)
    code = code_of([[Part("a", [kernel, kernel, none, kernel])], [Part("b", [host, kernel])], []], PLAN)
    rows = np.zeros((len(code.table), 5), np.int64)
    assert [x.rows for x in segments(code, rows, [0, 1, 2], 100)] == [(0, 1, 3), (), (5,)]
    assert [x.rows for x in segments(code, rows, [0, 1, 2], 2)] == [(0, 1), (3,), (), (5,)]
    assert [label_of(code, row) for row in (0, 3, 4, 5)] == ["a", "a", "b", "b"]


@pytest.mark.parametrize(("family", "tasks", "blocks"), [
    ("one", 1, 1), ("one", 64, 1), ("one", 65, 2), ("one", 0, 0), ("one.gpu.two", 65, 65), ("one.gpu.two", 1, 1),
])  # fmt: skip
def test_a_launch_has_a_thread_or_a_block_for_each_task(family, tasks, blocks):
    loaded, args = SimpleNamespace(function=77, threads=64), np.zeros(20, np.int64)
    code = SimpleNamespace(kernels=(Kernel("host"), Kernel(family)), table=np.array([[0, 0, 3, 1], [1, 5, tasks, 1]]))
    rows = launch_rows(SimpleNamespace(code=code, loaded=(None, loaded)), args)
    assert rows.tolist() == [[0] * 5, [77, blocks, 64, args.ctypes.data + 40, tasks]]


def test_kernels_are_compiled_for_few_numbers_of_arguments_none_below_the_calls():
    words = [round_words(n) for n in range(40)]
    assert all(w >= max(n, 1) for n, w in enumerate(words)) and words == sorted(words)
    assert len(set(words)) < 8 and [round_words(w) for w in words] == words
