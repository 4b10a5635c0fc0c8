"""Rows beyond a count: not computed, and nothing depends on them."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.ir.graph import Node
from cgraph.ir.roots import Roots
from cgraph.ir.traverse import post_order
from cgraph.kernels.target import target_named
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pipeline import lower_graph
from cgraph.ops.leaf import Var
from cgraph.ops.physical.first_rows import FirstRows
from cgraph.ops.prefix import Prefix, prefix
from cgraph.passes.bound_rows import SMALL, bound_rows, drop_prefixes, rows_read, sink_prefixes
from tests.support.tolerance import assert_near

ROWS, COLUMNS = 64, 160  # large enough that bounding pays


def lowered(*outputs: Node) -> tuple[Node, ...]:
    return lower_graph(outputs, target_named("avx2"), LoweringOptions())


def kinds(outputs: tuple[Node, ...], op: type) -> list[Node]:
    return [x for x in post_order(outputs) if isinstance(x.op, op)]


def test_prefixes_sink_below_a_run_of_ops():
    x, w, n = Var((ROWS, COLUMNS), name="x"), Var((COLUMNS, COLUMNS), name="w"), Var((), "int64", "n")
    y = prefix(cg.exp(prefix(cg.sin(prefix(x, n)) @ w, n)), n)
    sunk = sink_prefixes((y,))
    assert len(kinds(sunk, Prefix)) == 1 and isinstance(sunk[0].op, Prefix)
    assert set(rows_read(sunk).values()) == {n, None}
    assert sink_prefixes(sunk) is sunk or sink_prefixes(sunk)[0] is sunk[0]


def test_a_value_that_is_read_whole_is_computed_whole():
    x, n = Var((ROWS, COLUMNS), name="x"), Var((), "int64", "n")
    y = cg.sin(x)
    assert not kinds(lowered(prefix(cg.exp(y), n), cg.sum(y)), Prefix)
    (bounded,) = kinds(lowered(prefix(cg.cumsum(cg.exp(y), 1), n), y), FirstRows) or [None]
    assert bounded is None or bounded.operands[-1] is n
    assert not kinds(bound_rows(Roots([y])), FirstRows)


def test_two_counts_bound_nothing():
    x, n, m = Var((ROWS, COLUMNS), name="x"), Var((), "int64", "n"), Var((), "int64", "m")
    y = cg.softmax(x)
    assert rows_read(Roots([prefix(y, n), prefix(y, m)]))[y] is None
    assert rows_read(Roots([prefix(y, n)]))[y] is n


def test_a_small_step_is_bounded_where_its_positions_may_be_unwritten():
    """Rows that a bounded step leaves out may be no positions; a take whose positions are all computed runs whole."""
    n, small = Var((), "int64", "n"), Var((ROWS,), "int64", "small")
    large = Var((ROWS, SMALL // (8 * ROWS)), "int64", "large")
    table = np.arange(100.0, dtype="f4")
    whole = prefix(cg.take(table, prefix(cg.minimum(small, 99), n)), n)
    assert not kinds(lowered(whole), FirstRows)
    bounded = prefix(cg.take(table, prefix(cg.max(cg.minimum(large, 99), 1), n)), n)
    ops = {x.op.op.name for x in kinds(lowered(bounded), FirstRows)}
    assert "take" in ops and len(ops) > 1


@pytest.mark.parametrize("between", [0, 1, 3])
def test_rows_that_small_steps_pass_on_are_unwritten_too(between):
    n, large = Var((), "int64", "n"), Var((ROWS, SMALL // (8 * ROWS)), "int64", "large")
    places = cg.max(cg.minimum(large, 99), 1)
    for _ in range(between):
        places = cg.abs(places - 1)
    found = bound_rows(Roots([prefix(cg.take(np.arange(100.0, dtype="f4"), places), n)]))
    ops = [x.op.op.name for x in kinds(found, FirstRows)]
    assert "take" in ops and "abs" not in ops


def test_a_step_pays_by_its_rows_and_its_products():
    """An operand that is read whole says nothing about the time of a row; multiply-adds do."""
    n, at = Var((), "int64", "n"), Var((ROWS,), "int64", "at")
    x, w = Var((ROWS, 4), name="x"), Var((4, SMALL), name="w")
    assert not kinds(lowered(prefix(cg.take(w, at, 1)[0], n)), FirstRows)
    assert kinds(lowered(prefix(cg.max(x @ w, 1), n)), FirstRows)


def test_without_passes_all_rows_are_computed():
    x, n = Var((ROWS, COLUMNS), name="x"), Var((), "int64", "n")
    assert drop_prefixes((prefix(cg.sin(x), n),))[0].name == "sin"
    f = cg.compile(prefix(cg.sin(x), n), [x, n], passes=False)
    a = np.ones((ROWS, COLUMNS), "f4")
    assert np.array_equal(f(a, np.int64(0)), cg.compile(cg.sin(x), x)(a))


STEPS = (
    lambda x, rng: cg.tanh(x),
    lambda x, rng: x * 0.5 + x,
    lambda x, rng: cg.tanh(x @ rng.normal(size=(COLUMNS, COLUMNS)).astype("f4") / COLUMNS),
    lambda x, rng: cg.softmax(x, -1),
    lambda x, rng: x - cg.mean(x, 1, keepdims=True),
    lambda x, rng: cg.reshape(cg.transpose(cg.reshape(x, (x.shape[0], 4, -1)), (0, 2, 1)), x.shape),
    lambda x, rng: cg.concat([x[:, COLUMNS // 2 :], x[:, : COLUMNS // 2]], 1),
    lambda x, rng: cg.take(x, rng.integers(0, COLUMNS, COLUMNS), 1),
)


def drawn(seed: int, image: Var, mask: Var) -> list[Node]:
    """Rows that a mask selects, through some steps with a promise behind each, and sums of the rows that count."""
    rng = np.random.default_rng(seed)
    (at,), n = places_of(mask)
    x, values = prefix(cg.take(image, at, 0), n), []
    for _ in range(6):
        other = STEPS[rng.integers(len(STEPS))](x, rng)
        x = prefix(other + x if rng.random() < 0.3 else other, n)
        values.append(x)
    counted = cg.less(np.arange(ROWS)[:, None], n)
    return [x, n, *(cg.sum(cg.where(counted, v, 0.0), 0) for v in values[::2])]


def places_of(mask: Var) -> tuple[list[Node], Node]:
    """The positions of True, then zeros, and how many there are."""
    order = cg.argsort(cg.logical_not(mask))
    return [order], cg.sum(mask.astype("int64"))


@pytest.mark.parametrize("seed", range(8))
def test_nothing_depends_on_rows_beyond_the_count(seed: int):
    """Poison fills bytes that nothing has written; the reference makes rows beyond the count NaN."""
    image, mask = Var((ROWS, COLUMNS), name="image"), Var((ROWS,), "bool", "mask")
    outputs, rng = drawn(seed, image, mask), np.random.default_rng(seed)
    engines = [CpuEngine(poison=True), CpuEngine(threads=1), CpuEngine(threads=2), "reference", "cuda-sim"]
    functions = [cg.compile(outputs, [image, mask], engine=e) for e in engines]
    assert kinds(functions[1].outputs, FirstRows)
    for share in (0.0, 0.02, 0.4, 1.0, 0.1):
        value, chosen = rng.normal(size=image.shape).astype("f4"), rng.random(ROWS) < share
        results = [f(value, chosen) for f in functions]
        count = int(results[0][1])
        trimmed = [[rows[:count], *rest] for rows, *rest in results]
        for other in trimmed[1:3]:
            assert all(np.array_equal(a, b) for a, b in zip(trimmed[0], other))
        for other in trimmed[3:]:
            for a, b in zip(trimmed[0], other):
                assert_near(b, a, "float32 networks")


def test_later_runs_compute_what_changed():
    """Incremental evaluation: a count that grows between runs brings rows that an earlier run left out."""
    x, w, n = Var((ROWS, COLUMNS), name="x"), Var((COLUMNS, COLUMNS), name="w"), Var((), "int64", "n")
    w.assign(np.eye(COLUMNS, dtype="f4"))
    f = cg.compile(prefix(cg.sin(x @ w), n), [x, n], changing=[x, n])
    value = np.random.default_rng(0).normal(size=x.shape).astype("f4")
    for count in (3, 3, 40, 1, ROWS):
        assert_near(f(value, np.int64(count))[:count], np.sin(value)[:count], "float32 sums near zero")


def test_a_saved_function_bounds_its_rows(tmp_path):
    x, n = Var((ROWS, COLUMNS), name="x"), Var((), "int64", "n")
    f = cg.compile(prefix(cg.tanh(cg.softmax(x)), n), [x, n])
    assert kinds(f.outputs, FirstRows)
    f.save(tmp_path / "saved")
    g = cg.load(tmp_path / "saved")
    value = np.random.default_rng(0).normal(size=x.shape).astype("f4")
    for count in (0, 5, ROWS):
        assert np.array_equal(f(value, np.int64(count))[:count], g(value, np.int64(count))[:count])


def bounded(*outputs: Node) -> list[str]:
    """The ops of which only the first rows are computed."""
    return sorted(x.op.op.name for x in kinds(bound_rows(Roots.of(outputs)), FirstRows))


def test_bytes_of_rows_or_multiply_adds_decide_whether_a_step_is_bounded():
    n, deep = Var((), "int64", "n"), SMALL // (4 * ROWS)
    large, small = Var((ROWS, deep // 2)), Var((ROWS, deep // 2 - 1))
    assert bounded(prefix(cg.exp(large), n)) == ["exp"] and not bounded(prefix(cg.exp(small), n))
    few, table = Var((ROWS, 4)), Var((4, 200))
    assert bounded(prefix(few @ Var((4, 128)), n)) == ["matmul"]
    assert not bounded(prefix(cg.take(Var((9000, 2)), Var((ROWS,), "int64"), 0), n))  # the table is read whole
    assert not bounded(prefix(cg.concat([large, large], 1), n)) and not bounded(prefix(few @ table[:, :3], n))


def test_a_prefix_goes_only_before_readers_of_its_own_count():
    x, n, m = Var((ROWS, COLUMNS)), Var((), "int64", "n"), Var((), "int64", "m")
    outputs = (prefix(cg.exp(prefix(x, m)), n),)
    assert [p.operands[1] for p in kinds(sink_prefixes(outputs), Prefix)] == [m, n]


@pytest.mark.parametrize("rows, is_bounded", [(1, False), (2, True)])
def test_a_step_of_one_row_is_never_bounded(rows, is_bounded):
    x, n = Var((rows, SMALL), name="x"), Var((), "int64", "n")
    assert bool(kinds(bound_rows(Roots([prefix(cg.exp(x), n)])), FirstRows)) is is_bounded


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("widths", [(1, 600), (600, 1), (2, 9), (40, 3)], ids=str)
def test_positions_are_read_only_up_to_the_rows_that_were_computed(tmp_path, widths, saved):
    """Steps with rows of other widths compute other numbers of rows. The graph moves -1, which is poison, outside."""
    rows, n = 3000, Var((), "int64", "n")
    first, second = (Var((rows, width), "int64", name) for width, name in zip(widths, ("first", "second")))
    table = np.arange(100, dtype="i4")
    places = prefix(cg.max(cg.minimum(first, 99), 1) + cg.max(cg.minimum(second, 0), 1), n)
    values = prefix(cg.take(table, cg.where(cg.less(places, 0), 1000, places)), n)
    deeper = prefix(cg.take(table, cg.where(cg.less(values, 0), 1000, values)), n)
    ops = [x.op.op.name for x in kinds(lowered(deeper), FirstRows)]
    assert ops.count("take") == 2 and len(ops) > 3
    f = cg.compile(cg.sum(cg.where(np.arange(rows) < n, deeper, 0)), [first, second, n], engine=CpuEngine(poison=True))
    if saved:
        f.save(tmp_path / "f")
        f = cg.load(tmp_path / "f")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 150, x.shape) for x in (first, second))
    wanted = np.minimum(a, 99).max(1)
    for count in (0, 1, 2, 5, 17, 100, 1, 1500, 3, 2999, 3000, 7):
        assert f(a, b, np.int64(count)) == wanted[:count].sum()
