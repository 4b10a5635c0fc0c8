"""The Vars of a saved function: each named once, shared all or none, and told apart from all others."""

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError, InputError
from cgraph.saved.layout import MANIFEST, with_sum


def step(a: tuple[int, ...] = (3,), b: tuple[int, ...] = (2,), names: str = "ab") -> tuple[cg.Function, cg.Var, cg.Var]:
    """A function with two cells, both updated and both read."""
    x, v, w = cg.Var((), name="x"), cg.Var(a, name=names[0]), cg.Var(b, name=names[1])
    v.assign(np.ones(a, "f4"))
    w.assign(np.full(b, 2.0, "f4"))
    return cg.compile(x + cg.sum(v) + cg.sum(w), [x], updates={v: v + 1, w: w * 2}), v, w


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("function") / "saved"
    step()[0].save(folder)
    return folder


@pytest.fixture
def copy(saved, tmp_path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "copy"))


def rewritten(folder: Path, change) -> None:
    entries = json.loads((folder / MANIFEST).read_bytes())
    entries.pop("crc32")
    change(entries)
    (folder / MANIFEST).write_bytes(with_sum(json.dumps(entries)))


LISTS = ["cells", "updated", "variables"]


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("name", LISTS)
def test_a_manifest_that_names_one_var_twice_among_others_is_refused(copy, name, at):
    """The first again behind the last, and the last again before the first."""

    def change(entries):
        (target,) = entries["targets"].values()
        numbers = entries[name] if name in ("cells", "updated") else target[name]
        assert len(numbers) >= 2
        numbers[:] = [*numbers, numbers[0]] if at else [numbers[-1], *numbers]

    rewritten(copy, change)
    with pytest.raises(FormatError, match="malformed"):
        cg.load(copy)


@pytest.mark.parametrize("name", LISTS)
def test_a_manifest_that_names_one_var_in_the_place_of_another_is_refused(copy, name):
    def change(entries):
        (target,) = entries["targets"].values()
        numbers = entries[name] if name in ("cells", "updated") else target[name]
        numbers[1] = numbers[0]

    rewritten(copy, change)
    with pytest.raises(FormatError, match="malformed"):
        cg.load(copy)


@pytest.mark.parametrize("start", [-2, -(1 << 40), 1 << 40])
def test_a_value_that_begins_outside_of_its_file_is_refused(copy, start):
    for i in range(3):
        rewritten(copy, lambda m, i=i: m["variables"][i].__setitem__(4, start))
        with pytest.raises(FormatError):
            cg.load(copy)


# -- sharing --------------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), [((3,), (7,)), ((7,), (2,)), ((7,), (7,))])
def test_cells_are_shared_all_or_none(saved, a, b):
    """Whichever of them does not fit."""
    function, (other, v, w) = cg.load(saved), step(a, b)
    before = {name: x.cell for name, x in function.state.items()}
    with pytest.raises(InputError, match="cannot share a cell"):
        function.share_cells(other)
    assert {name: x.cell for name, x in function.state.items()} == before
    function(0.0)
    assert v.value.max() == 1.0 and w.value.max() == 2.0


def test_all_cells_of_a_name_are_shared_and_no_others(saved):
    function, (other, v, c) = cg.load(saved), step(names="ac")
    function.share_cells(other)
    assert function.state["a"].cell is v.cell and function.state["b"].cell is not c.cell
    function(0.0)
    np.testing.assert_array_equal(v.value, [2, 2, 2])
    assert function.state["b"].value.tolist() == [4.0, 4.0] and c.value.tolist() == [2.0, 2.0]


def test_what_two_loads_hold_is_their_own(saved):
    first, second = cg.load(saved), cg.load(saved)
    first(0.0)
    assert first.state["a"].value[0] == 2.0 and second.state["a"].value[0] == 1.0


def test_loading_leaves_no_descriptor_open_whether_it_succeeds_or_not(copy):
    cg.load(copy)
    before = len(os.listdir("/proc/self/fd"))
    for spoil in (lambda: None, lambda: (copy / "state.bin").write_bytes(b""), lambda: copy.chmod(0o777)):
        spoil()
        with suppress(FormatError):
            cg.load(copy)
        assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("rows", [slice(0, 2), slice(1, 3), slice(2, 4)])
def test_an_output_that_is_a_part_of_a_constant_is_that_part(tmp_path, rows):
    """Folding would give it bytes of its own."""
    constant = cg.Const(np.arange(20, dtype="f4").reshape(4, 5))
    x = cg.Var((2,), name="x")
    function = cg.compile([constant[rows, ::2], x + 1], [x], passes=False)
    function.save(tmp_path / "saved")
    got = cg.load(tmp_path / "saved")(np.zeros(2, "f4"))[0]
    np.testing.assert_array_equal(got, np.arange(20, dtype="f4").reshape(4, 5)[rows, ::2])


def test_vars_that_no_output_reads_keep_their_values(tmp_path):
    """Of four Vars two are read, and two are written; one of each is both."""
    x = cg.Var((2,), name="x")
    names = {name: cg.Var((2,), name=name) for name in ("both", "read", "written", "counted")}
    for i, v in enumerate(names.values()):
        v.assign(np.full(2, 10.0 + i, "f4"))
    both, read, written, counted = names.values()
    function = cg.compile(x + both + read, [x], updates={both: both + x, written: x * 3, counted: counted + 1})
    function.save(tmp_path / "saved")
    loaded = cg.load(tmp_path / "saved")
    assert {name: y.value.tolist() for name, y in loaded.state.items()} == {
        name: v.value.tolist() for name, v in names.items()
    }
    for f in (function, loaded):
        f(np.ones(2, "f4"))
    for name, v in names.items():
        np.testing.assert_array_equal(loaded.state[name].value, v.value)
