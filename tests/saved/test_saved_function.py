"""A saved function: values of its cells in memory of their own, bits for any number of threads, shared cells."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError, InputError
from cgraph.kernels.code_image import UnknownCode
from cgraph.record import replace
from cgraph.saved import function
from cgraph.saved.function import SavedFunction
from cgraph.saved.layout import STATE
from tests.support.saved import running_sum

ONES = np.ones(3, "f4")


def test_cells_have_their_values_in_memory_of_their_own(saved):
    f, raw = cg.load(saved), (saved / STATE).read_bytes()
    assert type(f) is SavedFunction
    assert {name: x.value.tolist() for name, x in f.state.items()} == {"w": [0, 1, 2], "count": 4}
    np.testing.assert_array_equal(f(ONES), np.cumsum([0, 1, 2]) + 4)
    assert f.state["count"].value == 5 and (saved / STATE).read_bytes() == raw
    assert cg.load(saved).state["count"].value == 4


def test_a_cell_without_a_value_has_none_after_loading(tmp_path):
    running_sum().save(tmp_path / "saved")
    assert {name: x.cell.array is None for name, x in cg.load(tmp_path / "saved").state.items()} == {
        "w": False, "count": True,
    }  # fmt: skip


@pytest.mark.parametrize("in_memory", [False, True])
def test_threads_and_memory_do_not_change_bits(saved, in_memory):
    f = running_sum()
    f.cells[1].assign(4.0)
    want = f(ONES)
    for threads in (1, 3):
        got = cg.load(saved, threads=threads, in_memory=in_memory, verify=True)
        assert got.program.threads == threads and got(ONES).tobytes() == want.tobytes()


def test_a_function_runs_on_all_cores_unless_told_otherwise(saved, monkeypatch):
    monkeypatch.setattr("cgraph.saved.function.cores", lambda: 5)
    assert [cg.load(saved, **more).program.threads for more in ({}, {"threads": 0}, {"threads": 2})] == [5, 5, 2]


def test_two_loaded_functions_share_cells_of_a_name_until_a_spec_differs(saved, tmp_path):
    f, other = cg.load(saved), cg.load(saved)
    f.share_cells(other)
    f(ONES)
    assert other.state["count"].value == 5 and f.state["w"].cell is other.state["w"].cell
    x, w, count = cg.Var((3,), name="x"), cg.Var((2,), name="w"), cg.Var((), name="count")
    w.assign([1.0, 2.0])
    different = cg.compile(cg.sum(w) * x + count, [x], {count: count + 1})
    before = [x.cell for x in f.state.values()]
    with pytest.raises(InputError, match=r"w float32\[3\] cannot share a cell with float32\[2\]"):
        f.share_cells(different)
    assert [x.cell for x in f.state.values()] == before


@pytest.mark.parametrize("count", [7, 8, 9])
def test_functions_of_any_number_of_vars_are_loaded(tmp_path, count):
    """A bit for each Var and one more, in bytes."""
    xs = [cg.Var((2,), name=f"x{i}") for i in range(count)]
    cg.compile(cg.cumsum(cg.stack(xs), 0)[-1], xs).save(tmp_path / "saved")
    numbers = [np.float32([i, 2 * i]) for i in range(count)]
    np.testing.assert_array_equal(cg.load(tmp_path / "saved")(*numbers), sum(numbers))


CHANGES = {
    "Vars": lambda t: replace(t, depends=np.zeros((len(t.depends), t.depends.shape[1] + 1), np.uint8)),
    "steps": lambda t: replace(t, workspace=t.workspace[:-1]),
}


@pytest.mark.parametrize("of", CHANGES)
def test_tables_of_another_number_of_vars_or_steps_are_refused(saved, monkeypatch, of):
    tables_of = function.tables_of
    monkeypatch.setattr(function, "tables_of", lambda arrays: CHANGES[of](tables_of(arrays)))
    with pytest.raises(FormatError, match="malformed: what depends on what"):
        cg.load(saved)


def test_an_interpreter_has_all_of_its_functions_and_code_that_cannot_be_placed_is_refused(saved, monkeypatch):
    parts, memory = cg.load(saved).parts, np.zeros(1, np.uint8)
    numbers = list(range(len(function.WORDS)))
    monkeypatch.setattr(function, "place_code", lambda parts, name: (memory, numbers))
    natives, place = function.native_of(parts)
    assert list(natives.values()) == numbers and place is memory
    numbers.pop()
    with pytest.raises(FormatError, match="malformed: the interpreter"):
        function.native_of(parts)
    monkeypatch.undo()

    def fail(image):
        raise UnknownCode("an address that nobody knows")

    monkeypatch.setattr(function, "place_image", fail)
    with pytest.raises(FormatError, match="^an address that nobody knows$"):
        function.place_code(parts, "kernels")


def test_cells_that_only_update_edges_write_are_shared_too(tmp_path):
    x, last = cg.Var((3,), name="x"), cg.Var((3,), name="last")
    cg.compile([], [x], {last: x * 2}).save(tmp_path / "saved")
    f, other = cg.load(tmp_path / "saved"), cg.load(tmp_path / "saved")
    f.share_cells(other)
    f(ONES)
    assert not f.cells and other.state["last"].value.tolist() == [2, 2, 2]


@pytest.mark.parametrize("missing", [0, 1])
def test_a_value_lies_in_its_file_to_the_last_byte(saved, missing):
    """That of `count` is the last one, and may begin so late that its four bytes just fit."""
    parts = cg.load(saved).parts
    nbytes = len(parts.files[STATE])
    starts = tuple(nbytes - 4 + missing if x.name == "count" else start for x, start in zip(
        parts.manifest.variables, parts.manifest.starts
    ))  # fmt: skip
    parts.manifest = replace(parts.manifest, starts=starts)
    if missing:
        with pytest.raises(FormatError, match="malformed: a value outside of its file"):
            SavedFunction(parts, 1)
    else:
        assert SavedFunction(parts, 1).state["count"].value == 4


def two_cells(names):
    """Adds x to each of two cells, after it returned their sum."""
    x = cg.Var((3,), name="x")
    cells = [cg.Var((3,), name=name) for name in names]
    for i, cell in enumerate(cells):
        cell.assign(np.full(3, i + 1, "f4"))
    return cg.compile(cells[0] + cells[1], [x], {cell: cell + x for cell in cells})


@pytest.mark.parametrize(("one", "other", "shared"), [
    ("ab", "ab", "ab"), ("ab", "ba", "ab"), ("ab", "bc", "b"), ("ab", "cd", ""), ("ab", "ca", "a"),
])  # fmt: skip
def test_every_cell_of_a_common_name_is_shared_and_no_other(tmp_path, one, other, shared):
    for name, cells in (("one", one), ("other", other)):
        two_cells(cells).save(tmp_path / name)
    f, g = cg.load(tmp_path / "one"), cg.load(tmp_path / "other")
    own = {name: x.cell for name, x in f.state.items()}
    f.share_cells(g)
    for name, x in f.state.items():
        assert x.cell is (g.state[name].cell if name in shared else own[name])
    values = {name: x.value[0] for name, x in f.state.items()}
    np.testing.assert_array_equal(f(ONES), np.full(3, sum(values.values())))
    assert {name: x.value[0] for name, x in f.state.items()} == {name: n + 1 for name, n in values.items()}
    for name in shared:
        assert g.state[name].value[0] == values[name] + 1


def test_values_of_several_cells_come_from_their_own_places(tmp_path):
    x = cg.Var((2,), name="x")
    shapes = {"a": ((3,), "f4"), "b": ((), "i8"), "c": ((2, 2), "i2"), "d": ((5,), "u1"), "e": ((2,), "f8")}
    cells = {name: cg.Var(shape, dtype, name) for name, (shape, dtype) in shapes.items()}
    for i, (name, cell) in enumerate(cells.items()):
        if name != "c":
            cell.assign(
                np.arange(10 * i, 10 * i + np.prod(cell.shape, dtype=int)).reshape(cell.shape).astype(cell.dtype)
            )
    outputs = {name: cell + cell for name, cell in cells.items()} | {"x": x * 2}
    cg.compile(outputs, inputs=[x]).save(tmp_path / "saved")
    f = cg.load(tmp_path / "saved")
    assert f.state["c"].cell.array is None
    f.state["c"].assign(np.full((2, 2), 3, "i2"))
    found = f(np.float32([1, 2]))
    assert found["c"].tolist() == [[6, 6], [6, 6]] and found["x"].tolist() == [2, 4]
    for i, name in enumerate(cells):
        if name != "c":
            assert found[name].ravel().tolist() == [2 * n for n in range(10 * i, 10 * i + found[name].size)], name
            assert found[name].dtype == cells[name].dtype


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("single", [False, True])
def test_only_a_single_output_is_returned_by_itself(tmp_path, count, single):
    """A manifest that says so of two outputs does not make one of them the result."""
    x = cg.Var((3,), name="x")
    cg.compile([x + 1, x * 2][:count], [x]).save(tmp_path / "saved")
    parts = cg.load(tmp_path / "saved").parts
    parts.manifest.entries["single"] = single
    found = SavedFunction(parts, 1)(ONES)
    if single and count == 1:
        assert isinstance(found, np.ndarray) and found.tolist() == [2, 2, 2]
        return
    assert isinstance(found, list) and [y.tolist() for y in found] == [[2, 2, 2], [2, 2, 2]][:count]
