"""A Runner's own state: cells by name, arenas and their values after failures, destinations, other libraries."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.errors import FormatError, InputError, UnassignedError
from cgraph.memory.incremental import StepSelection
from cgraph.running import runner
from cgraph.storage.cell import CellValue, commit
from cgraph.storage.shared_arenas import SharedArenas
from cgraph.system.fair_lock import FairLock


def ramp(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype="f4").reshape(shape)


def with_cells() -> tuple[cg.Function, cg.Var, cg.Var]:
    """A function of a cell that is read, whose cumulative sum stays, and of one that is updated, too."""
    x, kept, count = cg.Var((4,), name="x"), cg.Var((4,), name="kept"), cg.Var((), name="count")
    f = cg.compile(cg.cumsum(kept, 0) * x + count, [x], {count: count + 1}, changing=[x, count])
    return f, kept.assign(ramp(4)), count.assign(0.0)


def test_cells_of_one_name_are_numbered_and_none_is_listed_twice():
    a, b, c, d = (cg.Var((), name=name).assign(1) for name in ("v", "v", "v.2", "v"))
    f = cg.compile([x * 1.0 for x in (a, b, c, d)], [], {a: b * 1.0})
    assert [f.state[name] for name in ("v", "v.2", "v.2.2", "v.3")] == [a, b, c, d] and len(f.state) == 4


def test_a_state_is_loaded_into_the_cells_of_its_names_or_not_at_all(tmp_path):
    f, kept, count = with_cells()
    f.save_state(tmp_path / "state.safetensors")
    kept.assign(np.zeros(4))
    count.assign(7.0)
    f.load_state(tmp_path / "state.safetensors")
    np.testing.assert_array_equal(kept.value, ramp(4))
    assert count.value == 0
    np.testing.assert_array_equal(f(np.ones(4)), np.cumsum(ramp(4)))
    other = cg.compile(kept + 1)
    with pytest.raises(FormatError, match="'count' is only in the file or only in the Function"):
        other.load_state(tmp_path / "state.safetensors")
    longer = cg.Var((5,), name="kept").assign(np.zeros(5)), count
    with pytest.raises(InputError, match="kept expects"):
        cg.compile(cg.sum(longer[0]) + count).load_state(tmp_path / "state.safetensors")
    assert count.value == 1 and longer[0].value.tolist() == [0] * 5


def test_a_cell_without_a_value_stays_without_one(tmp_path):
    def step() -> tuple[cg.Function, cg.Var, cg.Var]:
        x, first = cg.Var((2,), name="x").assign([1, 2]), cg.Var((2,), name="first")
        return cg.compile(x * 2, updates={first: x + 1}), x, first

    (function, x, first), path = step(), tmp_path / "state.safetensors"
    function.save_state(path)
    x.assign([7, 8])
    function.load_state(path)
    assert x.value.tolist() == [1, 2] and not first.is_assigned
    function()
    with pytest.raises(FormatError, match="'first' is only in the file or only in the Function"):
        function.load_state(path)
    assert first.value.tolist() == [2, 3]
    function.save_state(path)
    other, y, began = step()
    other.load_state(path)
    assert y.value.tolist() == [1, 2] and began.value.tolist() == [2, 3]


def test_a_var_that_only_an_update_writes_needs_no_value_and_one_that_is_read_does():
    x, total, read = cg.Var((), name="x"), cg.Var((), name="total"), cg.Var((), name="read")
    f = cg.compile([], [x], {total: x + read})
    with pytest.raises(UnassignedError, match="read float32"):
        f(1.0)
    with pytest.raises(UnassignedError, match="total"):
        _ = total.value
    read.assign(10.0)
    assert f(1.0) == [] and total.value == 11


def test_after_a_run_that_failed_everything_is_computed_anew():
    def refuse(value: np.ndarray) -> np.ndarray:
        if value[0] < 0:
            raise ValueError("negative")
        return value

    x, kept = cg.Var((4,), name="x"), cg.Var((4,), name="kept").assign(ramp(4))
    f = cg.compile(cg.cumsum(kept, 0) * cg.delay(refuse, x), [x], changing=[x])
    f(np.ones(4))
    kept.assign(-ramp(4))
    with pytest.raises(ValueError, match="negative"):
        f(-np.ones(4))
    assert len(f._idle) == 1 and f._idle[0].state is None
    np.testing.assert_array_equal(f(np.ones(4)), -np.cumsum(ramp(4)))


@pytest.mark.parametrize("fails", [False, True])
def test_updated_cells_have_new_versions_after_a_run_however_it_ends(fails):
    """Without one, every later call of another function would compute all that reads the cell."""

    def refuse(value: np.ndarray) -> np.ndarray:
        if value < 0:
            raise ValueError("negative")
        return value

    x = cg.Var((), name="x")
    cells = [cg.Var((), name=name).assign(1.0) for name in "ab"]
    f = cg.compile([], [x], {cell: cg.delay(refuse, x) + cell for cell in cells})
    f(1.0)
    before = [cell.cell.value.version for cell in cells]
    if fails:
        with pytest.raises(ValueError, match="negative"):
            f(-1.0)
    else:
        f(1.0)
    after = [cell.cell.value.version for cell in cells]
    assert None not in after and not {*before} & {*after}


@pytest.mark.parametrize("beside", [False, True])
def test_a_first_value_is_there_only_after_a_run_that_succeeds_whatever_ran_before(beside):
    """Also beside a Var that has a value."""

    def refuse(value: np.ndarray) -> np.ndarray:
        if value < 0:
            raise ValueError("negative")
        return value

    x, total, other = cg.Var((), name="x"), cg.Var((), name="total"), cg.Var((), name="other").assign(5.0)
    f = cg.compile([], [x], {total: cg.delay(refuse, x) + 1} | ({other: other + x} if beside else {}))
    f(1.0)
    assert total.value == 2
    commit([total.cell], [CellValue()])
    with pytest.raises(ValueError, match="negative"):
        f(-1.0)
    assert total.cell.array is None
    with pytest.raises(UnassignedError, match="total"):
        total.value  # noqa: B018 - memory that nobody wrote
    f(2.0)
    assert total.value == 3


def test_functions_in_one_arena_do_not_take_over_each_others_values():
    f, kept, _ = with_cells()
    x = cg.Var((4,), name="x")
    g = cg.compile(cg.cumprod(cg.cumsum(x + 1, 0), 0) - x, [x])
    rooms, turns = SharedArenas(), FairLock()
    f.share(rooms, turns)
    g.share(rooms, turns)
    assert rooms.nbytes == max(f.nbytes, g.nbytes)
    for i in range(3):
        np.testing.assert_array_equal(f(ramp(4)), np.cumsum(kept.value) * ramp(4) + i)
        np.testing.assert_array_equal(g(ramp(4)), np.cumprod(np.cumsum(ramp(4) + 1)) - ramp(4))
    assert len(rooms._idle) == 1 and len(rooms._idle[0].instances) == 2
    assert not f._idle, "it has no arena of its own"


def test_a_function_keeps_its_values_in_a_shared_arena_until_another_runs_there():
    (f, *_), (g, *_), rooms, chosen = with_cells(), with_cells(), SharedArenas(), list[StepSelection]()
    for function in (f, g):
        function.share(rooms, FairLock())
        steps = function.incremental.steps
        function.incremental.steps = lambda state, changed, steps=steps: (
            chosen.append(steps(state, changed)) or (chosen[-1])
        )
    for function in (f, f, g, g, f, f):
        function(ramp(4))
    assert [x.run is None for x in chosen] == [True, False] * 3, "the cumulative sum of `kept` is there in a second run"


def test_without_a_copy_outputs_in_the_memory_of_a_var_are_new_arrays():
    x, total = cg.Var((4,), name="x"), cg.Var((4,), name="total").assign(np.zeros(4))
    after = total + x
    f = cg.compile([after, x * 2], [x], {total: after})
    first, view = f(np.ones(4, "f4"), copy=False)
    second, again = f(ramp(4), copy=False)
    np.testing.assert_array_equal(first, np.ones(4))
    np.testing.assert_array_equal(second, ramp(4) + 1)
    assert np.shares_memory(view, again) and again.tolist() == [0, 2, 4, 6]


def test_runs_for_a_timer_read_the_cells_and_write_none():
    f, _, count = with_cells()
    f(np.ones(4))
    count.assign(5.0)
    with f.instance_for((np.ones(4),), {}) as instance:
        instance.run()
        instance.run()
    assert count.value == 5 and len(f._idle) == 1 and f._idle[0].state is None
    with pytest.raises(ZeroDivisionError), f.instance_for((), {"x": np.ones(4)}):
        raise ZeroDivisionError
    assert len(f._idle) == 1


@pytest.mark.parametrize("shared", [False, True])
def test_an_arena_that_the_machine_does_not_give_is_an_arena_error_and_the_next_call_runs(shared, monkeypatch):
    def refuse(*memory):
        raise MemoryError("no memory")

    for engine, error in (("cpu", cg.ArenaError), ("reference", MemoryError)):
        x = cg.Var((4,), name="x")
        f = cg.compile(cg.cumsum(x) * 2, [x], engine=engine)
        if shared:
            f.share(SharedArenas(), FairLock())
        with monkeypatch.context() as patch:
            patch.setattr(type(f.program), "instance", refuse)
            with pytest.raises(error, match="no memory" if error is MemoryError else "the machine does not give"):
                f(np.ones(4))
        np.testing.assert_array_equal(f(np.ones(4)), [2, 4, 6, 8])


def test_several_results_go_to_as_many_arrays_in_order_and_keep_their_identity():
    x = cg.Var((2, 3), name="x")
    f = cg.compile({"sum": x + 1, "turned": x.T * 2}, [x])
    one, two = np.empty((2, 6), "f4")[:, ::2], np.empty((3, 2), "f4")
    results = f(ramp(2, 3), out=[one, two])
    assert results[0] is one and results["turned"] is two
    np.testing.assert_array_equal(one, ramp(2, 3) + 1)
    np.testing.assert_array_equal(two, ramp(2, 3).T * 2)
    for out, text in [
        ([one], "1 arrays for 2 outputs"), ([one, two, two], "3 arrays for 2 outputs"),
        (np.empty((3, 2, 3), "f4"), "3 arrays for 2 outputs"), (7, "Pass an array for each of the 2 outputs"),
    ]:  # fmt: skip
        with pytest.raises(InputError, match=text):
            f(ramp(2, 3), out=out)
    rows = np.empty((2, 3), "f4")
    g = cg.compile([x[0] + 1, x[1] * 2], [x])
    assert len(g(ramp(2, 3), out=rows)) == 2 and rows.tolist() == [[1, 2, 3], [6, 8, 10]]


def test_results_without_axes_are_numpys_scalars_unless_they_go_to_an_array():
    x = cg.Var((3,), name="x")
    f, room = cg.compile(cg.sum(x), [x]), np.zeros((), "f4")
    assert type(f(np.ones(3))) is np.float32 and f(np.ones(3), out=room) is room and room == 3
    assert isinstance(f(np.ones(3), copy=False), np.ndarray)


def test_results_are_arrays_of_another_library_but_never_views_that_it_cannot_track(monkeypatch):
    """NumPy's own `from_dlpack` stands in for torch's."""
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(from_dlpack=lambda x: ("torch", np.from_dlpack(x))))
    x = cg.Var((3,), name="x")
    plain = cg.compile([x + 1, x * 2], [x])
    f = plain.returning("torch")
    (library, one), (_, two) = f(np.ones(3))
    assert library == "torch" and one.tolist() == two.tolist() == [2, 2, 2]
    assert isinstance(plain(np.ones(3))[0], np.ndarray) and f._idle is plain._idle
    assert isinstance(f.returning("numpy")(np.ones(3))[0], np.ndarray)
    with pytest.raises(InputError, match="Use copy=True"):
        f(np.ones(3), copy=False)
    with pytest.raises(InputError, match="not a library"):
        plain.returning("pandas")


def test_arrays_in_a_devices_memory_are_views_that_a_library_can_track(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(from_dlpack=lambda x: x))
    x = cg.Var((3,), name="x")
    f = cg.compile(x + 1, [x], engine="cuda-sim").returning("torch")
    result = f(np.ones(3), copy=False)
    assert type(result).__name__ == "DeviceArray" and np.asarray(result).tolist() == [2, 2, 2]


def test_views_are_returned_also_after_calls_on_the_fast_path():
    x = cg.Var((3,), name="x")
    f = cg.compile(cg.cumsum(x, 0), [x])
    array = np.ones(3, "f4")
    copy = f(array)
    view, other = f(array, copy=False), f(2 * array, copy=False)
    assert np.shares_memory(view, other) and view.tolist() == [2, 4, 6] and copy.tolist() == [1, 2, 3]
    assert f.names == ("output0",) and cg.compile([x, x + 1], [x]).names == ("output0", "output1")


def test_a_cell_that_a_run_may_be_writing_counts_as_changed():
    f, kept, _ = with_cells()
    f(np.ones(4))
    (record,), asked = f._idle, []
    f.incremental = SimpleNamespace(steps=lambda state, changed: asked.append(changed))
    for then, now in ((record.versions, record.versions), ([None, 3], [None, 3]), ([None, 3], [8, 3])):
        record.versions = then
        f._steps(record, now)
    assert asked == [f._always, f._always | {f.cells[0]}, f._always | {f.cells[0]}]


def test_a_function_shows_its_inputs_outputs_and_arena():
    x, v = cg.Var((2,), name="x"), cg.Var((), name="v").assign(0)
    assert repr(cg.compile(x + 1, [x])).startswith("<Function (x float32[2]) -> float32[2]; arena ")
    assert "-> updates only" in repr(cg.compile([], [], {v: v + 1}))
    assert repr(cg.compile(x + 1, [x], engine="reference")) == "<Function (x float32[2]) -> float32[2]>"


# -- the fast path of calls with small results ----------------------------------------------------------------------
def fast_paths(function):
    """Count the runs that a function makes on the fast path from now on."""
    counted, short = [], function.run_directly

    def run(args):
        counted.append(result := short(args))
        return result

    function.run_directly = run
    return lambda: sum(x is not None for x in counted)


@pytest.mark.parametrize("outputs", ["one", "several", "a number"])
def test_the_fast_path_gives_what_the_general_path_gives(outputs):
    x, y = cg.Var((3, 4), name="x"), cg.Var((4,), "float64", name="y")
    product = cg.exp(x) * cg.astype(y, "float32")
    made = {"one": product, "several": [product, cg.sum(y, keepdims=True), product.T], "a number": cg.sum(product * y)}
    function = cg.compile(made[outputs], [x, y])
    count = fast_paths(function)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        a, b = rng.standard_normal((3, 4), "float32"), rng.standard_normal(4)
        got, want = function(a, b), function(a, b, out=rooms(function))
        for one, other in zip(*([x] if function.single else x for x in (got, want))):
            np.testing.assert_array_equal(one, other)
            assert not np.ndim(one) or (one.flags.owndata and one.flags.writeable and one.flags.c_contiguous)
    assert count() == 3


def rooms(function):
    made = [np.empty(x.shape, x.dtype) for x in function.results]
    return made[0] if function.single else made


def test_arrays_that_need_a_conversion_take_the_general_path():
    x = cg.Var((2, 3), name="x")
    function, a = cg.compile(x * 2, [x]), np.arange(6, dtype="float32").reshape(2, 3)
    count = fast_paths(function)
    for value in (a.tolist(), a.astype(float), np.asfortranarray(a), a[::-1], np.repeat(a, 2, 1)[:, ::2]):
        np.testing.assert_array_equal(function(value), np.asarray(value) * 2)
    assert count() == 0
    with pytest.raises(cg.InputError, match=r"x expects float32\[2,3\]"):
        function(a.T.copy())
    np.testing.assert_array_equal(function(a), a * 2)
    assert count() == 1


@pytest.mark.parametrize("kind", ["one", "two", "updated"])
@pytest.mark.parametrize("calls", [0, 2], ids=["first call", "later call"])
def test_names_that_are_no_inputs_and_missing_ones_are_refused_in_every_way_to_call(kind, calls):
    """The first call and those on the fast path; arrays that would fit have the wrong names, or are too many."""
    x, y, count = cg.Var((2,), name="x"), cg.Var((2,), name="y"), cg.Var((), name="count")
    variables, updates = [x] if kind == "one" else [x, y], {count.assign(0.0): count + 1} if kind == "updated" else {}
    function, one = cg.compile(sum(variables) * 2, variables, updates), np.ones(2, "f4")
    right = {v.name: one for v in variables}
    wrong = [right | {"more": one}, {"x": one, "other": one}, {"other": one} | right, {"other": one}, {}]
    for _ in range(calls):
        for got in (function(right), function(**right), function.run(None, right)[0]):
            np.testing.assert_array_equal(got, [2 * len(right)] * 2)
    for names in wrong:
        for call in (function, lambda x: function(**x), lambda x: function.run(None, x), lambda x: function.run([], x)):
            with pytest.raises(InputError, match=r"has no input '(more|other)'|missing|'x'"):
                call(names)


def test_whatever_fails_in_a_run_its_instance_is_given_back(monkeypatch):
    """An index outside its axis, in every way to call, and the caller's function that takes the results."""
    x, at = cg.Var((2, 3), name="x"), cg.Var((2,), "int64", "at")
    function = cg.compile([cg.take(x, at, 0), x + 1], [x, at])
    right, outside = (ramp(2, 3), np.zeros(2, "i8")), (ramp(2, 3), np.full(2, 9))
    taken, take, give = [], function._take, function._give
    monkeypatch.setattr(function, "_take", lambda: taken.append(record := take()) or record)
    monkeypatch.setattr(function, "_give", lambda record: (taken.remove(record), give(record)))
    ways = {
        "call": function, "run": lambda *a: function.run(None, dict(zip(("x", "at"), a))),
        "each": lambda *a: function.run_each(a, lambda i, y: None), "out": lambda *a: function(*a, out=rooms(function)),
        "no copy": lambda *a: function(*a, copy=False), "general": lambda *a: function(*map(np.ndarray.tolist, a)),
    }  # fmt: skip
    for call in ways.values():
        for _ in range(2):
            call(*right)
            with pytest.raises(cg.PositionError):
                call(*outside)
            assert not taken and len(function._idle) == 1

    def fail(i, y):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        function.run_each(right, fail)
    assert not taken and len(function._idle) == 1


def test_arrays_fit_if_each_input_has_one_of_its_shape_and_dtype():
    x, n = cg.Var((2, 3), name="x"), cg.Var((2,), "int32", name="n")
    function = cg.compile([x * 2, n + 1], [x, n])
    right = np.zeros((2, 3), "f4"), np.zeros(2, "i4")
    assert function.fits(right) and function.fits(list(right))
    wrong = [
        (), right[:1], (*right, right[1]), right[::-1], (right[0].tolist(), right[1]), (right[0], np.zeros(2, "i8")),
        (np.zeros((3, 2), "f4").T, right[1]), (np.zeros((2, 2), "f4"), right[1]), (np.zeros((1, 2, 3), "f4"), right[1]),
    ]  # fmt: skip
    assert not [arrays for arrays in wrong if function.fits(arrays)]


def test_a_view_of_an_earlier_result_is_copied_before_the_run():
    x = cg.Var((8,), name="x")
    function = cg.compile(cg.cumsum(x) + x, [x])
    a = np.arange(8, dtype="float32")
    function(a)
    view = function(a, copy=False)
    want = np.cumsum(view) + view
    np.testing.assert_array_equal(function(view), want)


@pytest.mark.parametrize("outputs", ["an input", "a view of an input", "a number", "a constant", "no element"])
def test_outputs_that_nothing_computes_are_new_arrays_on_the_fast_path(outputs):
    x, n = cg.Var((2, 3), name="x"), cg.Var((), name="n")
    fixed = np.arange(3, dtype="float32")
    values = {
        "an input": x,
        "a view of an input": x.T[1:],
        "a number": n,
        "a constant": cg.Const(fixed),
        "no element": x[2:],
    }
    function = cg.compile([x + n, values[outputs]], [x, n])
    count, a, b = fast_paths(function), np.arange(6, dtype="float32").reshape(2, 3), np.array(7, "float32")
    want = {"an input": a, "a view of an input": a.T[1:], "a number": b, "a constant": fixed, "no element": a[2:]}[
        outputs
    ]
    for _ in range(2):
        total, got = function(a, b)
        np.testing.assert_array_equal(total, a + 7)
        np.testing.assert_array_equal(got, want)
        assert got.dtype == want.dtype and got.shape == want.shape
        if np.ndim(got):
            got[...] = -1  # neither the caller's array nor the constant
    np.testing.assert_array_equal(a.ravel(), np.arange(6))
    assert count() == 2


def test_an_output_that_is_a_view_of_an_earlier_result_is_read_before_the_run():
    x = cg.Var((4,), name="x")
    function = cg.compile([x + 1, x], [x])
    first = function(np.zeros(4, "float32"), copy=False)[0]
    total, same = function(first)
    np.testing.assert_array_equal(total, np.full(4, 2))
    np.testing.assert_array_equal(same, np.ones(4))


def test_what_remembers_takes_the_general_path():
    x, w = cg.Var((4,), name="x"), cg.Var((4,), name="w").assign(np.ones(4, "float32"))
    ones = np.ones(4, "float32")
    for function in (
        cg.compile(x + w, [x]),
        cg.compile(x, [x], updates={w: w + x}),
        cg.compile(x + 1, [x], engine="reference"),
        cg.compile(x + 1, [x], engine=CpuEngine(poison=255)),
    ):
        count = fast_paths(function)
        function(ones)
        assert count() == 0


def test_an_index_outside_its_axis_is_refused_in_the_fast_path():
    x, i = cg.Var((4,), name="x"), cg.Var((2,), "int64", name="i")
    function = cg.compile(cg.take(x, i), [x, i])
    count, ones = fast_paths(function), np.ones(4, "float32")
    for _ in range(2):
        with pytest.raises(cg.PositionError):
            function(ones, np.array([0, 9]))
        np.testing.assert_array_equal(function(ones, np.array([0, 3])), [1, 1])
    assert count() == 2


class OnDevice(np.ndarray):
    """An array of a device, which a program takes as it is."""


def test_arrays_of_a_device_stay_there_and_fit_or_are_refused(monkeypatch):
    x = cg.Var((2, 3), name="x")
    f = cg.compile(x + 1, [x], engine="reference")
    monkeypatch.setattr(
        type(f.program), "own_array", lambda self, value: value if type(value) is OnDevice else None, raising=False
    )
    own = ramp(2, 3).view(OnDevice)
    assert f._value(x, own) is own
    assert type(f._value(x, ramp(2, 3))) is np.ndarray
    for wrong, message in (
        (ramp(3, 2).view(OnDevice), r"x expects float32\[2,3\], got float32\[3,2\]. Reshape"),
        (ramp(2, 3).astype("f8").view(OnDevice), r"x expects float32\[2,3\], got float64\[2,3\]. Convert"),
    ):
        with pytest.raises(InputError, match=message):
            f._value(x, wrong)


def test_what_reads_or_writes_several_cells_waits_for_its_turn(tmp_path, monkeypatch):
    """A state that is saved, loaded or written by a run is that between two runs: all of it inside of one turn."""
    f, kept, count = with_cells()
    inside, seen = [], []

    class Turns(FairLock):
        def run(self, work):
            inside.append(work)
            try:
                return super().run(work)
            finally:
                inside.pop()

    def watched(name, work):
        return lambda *args: seen.append((name, bool(inside))) or work(*args)

    f._turns = Turns()
    monkeypatch.setattr(f, "_arrays", watched("read", f._arrays))
    monkeypatch.setattr(f, "_run", watched("run", f._run))
    monkeypatch.setattr(runner, "commit", watched("write", runner.commit))
    f.save_state(tmp_path / "state")
    f.load_state(tmp_path / "state")
    f(ramp(4))
    f.save(tmp_path / "saved")
    assert [name for name, _ in seen][:2] == ["read", "write"] and seen and all(is_inside for _, is_inside in seen)
    assert not inside


@pytest.mark.parametrize("missing", ["first", "second"])
def test_the_var_without_a_value_is_named_and_nothing_runs(missing):
    x, total = cg.Var((), name="x"), cg.Var((), name="total").assign(5.0)
    cells = {name: cg.Var((), name=name) for name in ("first", "second")}
    f = cg.compile(x, [x], {total: x * cells["first"] + cells["second"]})
    for name, v in cells.items():
        if name != missing:
            v.assign(1.0)
    for call in (lambda: f(2.0), lambda: f.run_each([2.0], print), lambda: f.instance_for((2.0,), {}).__enter__()):
        with pytest.raises(UnassignedError, match=f"{missing} float32"):
            call()
    assert total.value == 5 and len(f._idle) == 1
    cells[missing].assign(1.0)
    assert f(2.0) == 2 and total.value == 3


def test_a_function_without_a_plan_needs_no_bytes_of_shared_arenas():
    x, rooms = cg.Var((4,), name="x"), SharedArenas()
    plain, planned = cg.compile(x * 2, [x], engine="reference"), cg.compile(cg.cumsum(cg.sort(x) * 2) * 3, [x])
    for f, nbytes in ((plain, 0), (planned, planned.nbytes)):
        f.share(rooms, FairLock())
        assert rooms.nbytes == nbytes
    for f, want in ((plain, 2 * ramp(4)), (planned, np.cumsum(2 * ramp(4)) * 3), (plain, 2 * ramp(4))):
        np.testing.assert_array_equal(f(ramp(4)), want)


def test_arrays_of_another_library_come_on_no_fast_path_of_numpys(monkeypatch):
    """Whichever of the two was called before, with arrays that need no conversion."""
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(from_dlpack=lambda x: ("torch", np.from_dlpack(x))))
    x, value = cg.Var((3,), name="x"), np.ones(3, "f4")
    plain = cg.compile(x + 1, [x])
    plain(value)
    other = plain.returning("torch")
    for _ in range(2):
        assert other(value)[0] == "torch" and other.run(None, {"x": value})[0][0] == "torch"
        for function in (plain, other.returning("numpy")):
            assert type(function(value)) is np.ndarray and function.run_directly((value,)) is not None


def test_a_file_of_a_state_has_the_values_between_two_runs(tmp_path, monkeypatch):
    """Runs that begin while the file is being written change no array of it."""
    x, total, write = cg.Var((4,), name="x"), cg.Var((4,), name="total").assign(ramp(4)), runner.slots.write_safetensors
    f = cg.compile(total * 2, [x], {total: total + x})

    def write_beside_runs(path, arrays):
        f(np.ones(4, "f4"))
        f(np.ones(4, "f4"))
        write(path, arrays)

    monkeypatch.setattr(runner.slots, "write_safetensors", write_beside_runs)
    f.save_state(tmp_path / "state")
    np.testing.assert_array_equal(total.value, ramp(4) + 2)
    f.load_state(tmp_path / "state")
    np.testing.assert_array_equal(total.value, ramp(4))


def test_a_run_for_a_timer_gives_no_value_to_a_var_without_one():
    x, first = cg.Var((2,), name="x"), cg.Var((2,), name="first")
    f = cg.compile(x * 2, [x], {first: x + 1})
    with f.instance_for((np.ones(2, "f4"),), {}) as instance:
        instance.run()
        np.testing.assert_array_equal(instance.read(f.outputs[0]), [2, 2])
    assert not first.is_assigned
    f(np.ones(2, "f4"))
    np.testing.assert_array_equal(first.value, [2, 2])
