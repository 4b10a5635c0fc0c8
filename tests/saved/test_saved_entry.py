"""The entry of one target: constants in program order, relocations into their file, places of outputs, refusals."""

from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.code import Symbol
from cgraph.errors import FormatError
from cgraph.kernels.kernel import ARENA, Pointer, View
from cgraph.ops.leaf import Const
from cgraph.record import replace
from cgraph.saved.entry import (
    add_code,
    callback_labels,
    compiled_entry,
    in_program_order,
    plain,
    target_of,
    view_entry,
    weights_of,
)
from cgraph.saved.layout import KINDS, PAGE
from cgraph.saved.pieces import Pieces
from tests.support.emulated import TilesEngine


def named(pieces: Pieces) -> dict[str, np.ndarray]:
    """The arrays of a file by name."""
    raw = b"".join(map(bytes, pieces.parts))
    return {
        name: np.frombuffer(raw, dtype, int(np.prod(shape)), start).reshape(shape)
        for name, (dtype, shape, start) in pieces.index.items()
    }


def relocation(kind: str, number: int, positions: list[int], offsets: list[int]) -> SimpleNamespace:
    return SimpleNamespace(symbol=Symbol(kind, number), positions=np.array(positions), offsets=np.array(offsets))


def code_of(relocations: list, constants: list[np.ndarray], views: dict | None = None) -> SimpleNamespace:
    """Code with what the tables need; the constants are read by these relocations."""
    return SimpleNamespace(
        relocations=relocations, constants=constants, views=views or {},
        table=np.arange(8).reshape(2, 4), args=np.arange(9), first_row=np.array([0, 1, 2, 2]),
        labels=("one", "two\nlines"), label_of=np.array([1, 0]),
    )  # fmt: skip


ARRAYS = [np.full(n, n, "f4") for n in (1, 2, 3)]


def test_constants_come_in_the_order_in_which_rows_read_them():
    read = [relocation("constant", 0, [7, 20], [0, 0]), relocation("constant", 2, [30, 3], [0, 0])]
    read += [relocation("constant", 1, [1], [0]), relocation("variable", 0, [0], [0])]
    shown = np.zeros(5)
    views = {"a": SimpleNamespace(at=Pointer(shown, 0)), "b": SimpleNamespace(at=Pointer(ARENA, 0))}
    order = in_program_order(code_of(read, ARRAYS, views), {})
    assert [id(x) for x in order] == [id(x) for x in (ARRAYS[1], ARRAYS[2], ARRAYS[0], shown)]
    order = in_program_order(code_of(read, ARRAYS), {2: 0})
    assert [id(x) for x in order] == [id(x) for x in (ARRAYS[1], ARRAYS[0])]


def test_addresses_of_constants_point_into_their_file_and_those_of_a_ring_into_its_pieces():
    read = [
        relocation("constant", 0, [4, 6], [0, 8]),
        relocation("variable", 3, [2], [16]),
        relocation("constant", 1, [5], [4]),
        relocation("constant", 2, [8], [0]),
    ]
    pieces = Pieces()
    add_code(code_of(read, ARRAYS), pieces, {id(ARRAYS[0]): 64, id(ARRAYS[1]): 128}, {2: 5})
    arrays = named(pieces)
    assert arrays["symbols"].tolist() == [
        [KINDS.index("variable"), 3, 1], [KINDS.index("constant"), 6, 1], [KINDS.index("constant"), 0, 3],
    ]  # fmt: skip
    assert arrays["positions"].tolist() == [2, 8, 4, 6, 5]
    assert arrays["offsets"].tolist() == [16, 0, 64, 72, 132]
    assert bytes(arrays["labels"]) == b"one\ntwo lines"
    assert arrays["table"].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]] and arrays["args"].tolist() == list(range(9))
    assert arrays["first_row"].tolist() == [0, 1, 2, 2] and arrays["label_of"].tolist() == [1, 0]


def test_a_program_without_addresses_has_empty_tables():
    pieces = Pieces()
    add_code(code_of([], []), pieces, {}, {})
    arrays = named(pieces)
    assert arrays["symbols"].shape == (0, 3) and arrays["positions"].size == arrays["offsets"].size == 0


def test_an_output_lies_in_the_arena_a_constant_or_a_var():
    x, array = cg.Var((2, 3), name="x"), ARRAYS[2]
    for base, entry in [
        (ARENA, ["arena", 0, 8, [12, 4]]),
        (array, ["constant", 0, 72, [12, 4]]),
        (x, ["variable", 5, 8, [12, 4]]),
    ]:
        assert view_entry(View(Pointer(base, 8), (2, 3), (12, 4), "f4"), {x: 5}, {id(array): 64}) == entry


def test_params_become_json_values():
    def function() -> None:
        pass

    entry = plain((1, 2.5, "f4", ("add", (True, ())), None, function))
    assert entry[:4] == [1, 2.5, "f4", ["add", [True, []]]] and all(isinstance(x, str) for x in entry[4:])


def test_rows_that_call_python_are_named_and_refused():
    x = cg.Var((3,), name="x")
    f = cg.compile(cg.cumsum(cg.delay(np.negative, x), 0), [x])
    (number,) = callback_labels(f.program.code)
    assert "delay" in f.program.code.labels[number]
    with pytest.raises(FormatError, match="Python functions cannot be saved: delay"):
        target_of(f)
    plain_function = cg.compile(cg.cumsum(x, 0), [x])
    assert callback_labels(plain_function.program.code) == []
    assert target_of(plain_function).name == plain_function.program.target.name
    with pytest.raises(FormatError, match="Compile with engine='cpu'"):
        target_of(cg.compile(x + 1, [x], engine="reference"))


def test_products_on_tiles_are_refused():
    x = cg.Var((8, 5), name="x")
    f = cg.compile(x @ np.ones((5, 3), "f4"), [x], engine=TilesEngine())
    with pytest.raises(FormatError, match="tile registers cannot be saved"):
        target_of(f)


def test_constants_of_equal_bytes_lie_once_in_the_file(tmp_path):
    x, w = cg.Var((300,), name="x"), np.arange(300, dtype="f4")
    cg.compile(cg.cumsum(x * Const(w), 0) * Const(w.copy()), [x], passes=False).save(tmp_path / "saved")
    (file,) = (tmp_path / "saved").glob("constants-*.bin")
    assert w.nbytes <= file.stat().st_size < 2 * w.nbytes


def test_weights_of_a_ring_begin_at_pages_in_the_order_of_its_pieces():
    pieces = [SimpleNamespace(constant=i) for i in (2, 0)]
    code, ring = code_of([], ARRAYS), SimpleNamespace(nbytes=5 * PAGE, pieces=pieces)
    file, entry = weights_of(code, ring)
    raw = b"".join(map(bytes, file.parts))
    assert entry == [5 * PAGE, [[0, 12], [PAGE, 4]]] and file.nbytes == len(raw) == 2 * PAGE
    assert raw[:12] == ARRAYS[2].tobytes() and raw[PAGE : PAGE + 4] == ARRAYS[0].tobytes()


def test_pages_of_weights_of_a_ring_are_released_in_their_order(monkeypatch):
    released = []
    monkeypatch.setattr("cgraph.saved.entry.release", released.append)
    ring = SimpleNamespace(nbytes=PAGE, pieces=[SimpleNamespace(constant=i) for i in (2, 0)])
    weights_of(code_of([], ARRAYS), ring)
    assert [id(x) for x in released] == [id(ARRAYS[2]), id(ARRAYS[0])]


def test_code_for_a_target_that_no_list_of_features_knows_is_refused_by_its_name(monkeypatch):
    x = cg.Var((3,), name="x")
    f = cg.compile(cg.cumsum(x, 0), [x])
    name = f.program.target.name
    monkeypatch.setattr("cgraph.saved.entry.needs_of", lambda target: None)
    with pytest.raises(FormatError, match=f"code for the target '{name}' cannot be saved. Compile for another target"):
        target_of(f)
    monkeypatch.setattr("cgraph.saved.entry.needs_of", lambda target: frozenset())
    assert target_of(f).name == name


@pytest.mark.parametrize("ring", [None, "empty"])
def test_a_ring_without_pieces_has_no_file_of_weights(ring):
    """As of a program whose constants all stay in memory."""
    x = cg.Var((30,), name="x")
    f = cg.compile(cg.cumsum(x * np.arange(30, dtype="f4"), 0), [x])
    code, files = f.program.code, {}
    program = SimpleNamespace(code=replace(code, ring=SimpleNamespace(pieces=(), nbytes=0) if ring else None))
    stand_in = SimpleNamespace(program=program, incremental=f.incremental, outputs=f.outputs, precision=None)
    entry = compiled_entry(stand_in, target_of(f), {x: 0}, files)
    assert entry["ring"] is None and not any(name.startswith("weights") for name in files)
    assert entry["variables"] == [0] and len(entry["kernels"]) == len(code.kernels)
    assert sum(name.startswith("constants") for name in files) == 1
