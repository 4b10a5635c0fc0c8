"""A file of weights that changes or is damaged under an open function: an error, never other numbers."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu import reader as readers
from cgraph.engine.cpu import threads as pools
from cgraph.engine.cpu.ring import pieces_of, place_in_file
from cgraph.engine.cpu.streamed_weights import StreamedInstance
from cgraph.errors import WeightsError
from cgraph.ops.leaf import HASHED_NBYTES
from cgraph.record import replace
from cgraph.storage.weight_file import PAGE, StreamedWeights
from tests.support.patience import PATIENCE

SIZE, LAYERS = 200, 4
NBYTES = 4 * SIZE * SIZE  # of a layer's matrix


def net(layers: int = LAYERS) -> tuple[cg.Var, cg.Node]:
    rng = np.random.default_rng(0)
    x = y = cg.Var((4, SIZE), name="x")
    for _ in range(layers):
        y = cg.tanh(y @ cg.Const(rng.normal(0, 0.1, (SIZE, SIZE)).astype("f4")))
    return x, y


VALUE = np.random.default_rng(1).normal(size=(4, SIZE)).astype("f4")


def compiled(path: Path, verify: bool = False) -> cg.Function:
    x, y = net()
    return cg.compile(y, x, weights=StreamedWeights(str(path), 2 * NBYTES, verify=verify))


def saved(path: Path, verify: bool = False) -> cg.Function:
    """A saved function, whose folder is made the first time."""
    folder = path.with_name("folder")
    if not folder.exists():
        compiled(path.with_name("other")).save(folder)
    return cg.load(folder, verify=verify)


@pytest.fixture(params=[compiled, saved])
def make(request) -> Callable[..., cg.Function]:
    return request.param


def file_of(function: cg.Function) -> Path:
    return Path(function.program.code.ring.path)


def want() -> np.ndarray:
    x, y = net()
    return cg.compile(y, x)(VALUE)


def later(path: Path) -> None:
    """The clock of the file system may not have moved since."""
    os.utime(path, ns=(1, 1))


def flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def written_in_place(path: Path) -> None:
    flip(path, path.stat().st_size // 2)
    later(path)


def with_the_old_time(path: Path) -> None:
    """Only the time of the inode tells."""
    status = path.stat()
    while path.stat().st_ctime_ns == status.st_ctime_ns:
        flip(path, path.stat().st_size // 2)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def with_the_same_bytes_at_another_time(path: Path) -> None:
    later(path)


def cut_off(path: Path) -> None:
    os.truncate(path, 3 * PAGE)


def longer(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x")


def replaced(path: Path) -> None:
    """By a file of the same size and time."""
    shutil.copy2(path, path.with_name("copy"))
    os.replace(path.with_name("copy"), path)


def removed(path: Path) -> None:
    path.unlink()


CHANGES = [
    written_in_place,
    with_the_old_time,
    with_the_same_bytes_at_another_time,
    cut_off,
    longer,
    replaced,
    removed,
]


@pytest.mark.parametrize("runs", [0, 1, 2])
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changed_is_noticed_in_the_next_run_and_in_all_that_follow(tmp_path, make, change, runs):
    function = make(tmp_path / "w")
    for _ in range(runs):
        np.testing.assert_array_equal(function(VALUE), want())
    change(file_of(function))
    for _ in range(3):
        with pytest.raises(WeightsError, match="cannot be read" if change is removed else "has changed since"):
            function(VALUE)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (replaced, "another file has this name"),
        (longer, r"it had \d+ bytes and has \d+"),
        (later, "its modification time has changed"),
    ],
)
def test_the_message_names_the_file_what_differs_and_the_way_out(tmp_path, change, why):
    function = compiled(tmp_path / "w")
    function(VALUE)
    change(tmp_path / "w")
    with pytest.raises(WeightsError, match=rf"{tmp_path}/w: .*: {why}. Compile or load it again"):
        function(VALUE)


def test_what_is_compiled_again_after_a_change_runs(tmp_path):
    first = compiled(tmp_path / "w")
    first(VALUE)
    cut_off(tmp_path / "w")
    second = compiled(tmp_path / "w")
    np.testing.assert_array_equal(second(VALUE), want())
    with pytest.raises(WeightsError, match="another file has this name"):
        first(VALUE)


# -- during a run ---------------------------------------------------------------------------------------------------


@pytest.fixture
def before_reading(monkeypatch):
    """Call a function when the reader of the next run begins to read."""

    def put(work: Callable[[], None]) -> None:
        native = pools.native()

        def read(*args: int) -> int:
            work()
            return native.read(*args)

        monkeypatch.setattr(readers, "native", lambda: SimpleNamespace(read=read, halt=native.halt))

    return put


@pytest.mark.parametrize("change", [x for x in CHANGES if x is not cut_off])
def test_what_a_run_computed_of_a_file_that_changed_meanwhile_is_not_handed_out(tmp_path, make, change, before_reading):
    function, out = make(tmp_path / "w"), np.zeros((4, SIZE), "f4")
    done: list[bool] = []
    before_reading(lambda: done or (change(file_of(function)), done.append(True)))
    with pytest.raises(WeightsError):
        function(VALUE, out=[out])
    assert done and not out.any()


def test_a_file_that_is_cut_off_while_it_is_read_is_said(tmp_path, make, before_reading):
    function = make(tmp_path / "w")
    before_reading(lambda: cut_off(file_of(function)))
    with pytest.raises(WeightsError, match=r"piece \d of the weights cannot be read: the file has been cut off"):
        function(VALUE)


@pytest.mark.parametrize("change", [written_in_place, replaced, longer])
def test_a_run_that_is_refused_for_its_weights_has_changed_no_var(tmp_path, change, before_reading):
    """Vars that kernels write into, Vars that are copied at the end, and Vars without a value before."""
    x, y = net()
    mean, last, count = cg.Var((4, SIZE), name="mean"), cg.Var((4, SIZE), name="last"), cg.Var((), name="count")
    mean.assign(VALUE), count.assign(3.0)
    function = cg.compile(
        y,
        x,
        updates={mean: mean * 0.5 + y, last: y, count: count + 1.0},
        weights=StreamedWeights(str(tmp_path / "w"), 2 * NBYTES),
    )
    done: list[bool] = []
    before_reading(lambda: done or (change(tmp_path / "w"), done.append(True)))
    for _ in range(2):
        with pytest.raises(WeightsError):
            function(VALUE)
        assert (mean.value == VALUE).all() and count.value == 3.0 and last.cell.array is None


def test_an_index_that_is_wrong_since_the_file_changed_is_told_as_the_change(tmp_path, before_reading):
    """A constant of positions: the run ends at one outside of its axis."""
    rng, path = np.random.default_rng(0), tmp_path / "w"
    at = cg.Const(rng.integers(0, 10, 5 * HASHED_NBYTES // 8))
    x = cg.Var((10,), name="x")
    function = cg.compile(cg.sum(x[at]), x, weights=StreamedWeights(str(path), 10 * HASHED_NBYTES))

    def change() -> None:
        with path.open("r+b") as file:
            file.seek(PAGE * 2)
            file.write(b"\x7f" * HASHED_NBYTES)

    before_reading(change)
    with pytest.raises(WeightsError, match="has changed since"):
        function(np.zeros(10, "f4"))


# -- constants that stay in memory ------------------------------------------------------------------------------------


def copying(path: Path, verify: bool = False) -> tuple[cg.Function, cg.Var, np.ndarray]:
    """A function none of whose constants goes through the ring: what is in the file is copied by an update edge."""
    whole = np.random.default_rng(0).normal(size=(SIZE, SIZE)).astype("f4")
    v = cg.Var((SIZE, SIZE), name="v")
    return cg.compile([], updates={v: cg.Const(whole)}, weights=StreamedWeights(str(path), verify=verify)), v, whole


@pytest.mark.parametrize("runs", [0, 1])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_noticed_where_all_constants_of_the_file_stay_in_memory(tmp_path, change, runs):
    function, v, whole = copying(tmp_path / "w")
    for _ in range(runs):
        function()
        np.testing.assert_array_equal(v.value, whole)
    v.assign(np.zeros((SIZE, SIZE), "f4"))
    change(tmp_path / "w")
    with pytest.raises(WeightsError):
        function()
    assert not v.value.any()


def test_a_function_all_of_whose_constants_stay_in_memory_is_saved_and_shown(tmp_path):
    function, v, whole = copying(tmp_path / "w")
    function.save(tmp_path / "saved")
    other = cg.load(tmp_path / "saved")
    other()
    np.testing.assert_array_equal(other.state["v"].value, whole)
    assert "v" in str(cg.report(function))


@pytest.mark.parametrize("updates_first", [False, True])
def test_a_constant_that_a_step_and_an_update_edge_read_keeps_its_value(tmp_path, updates_first):
    whole = cg.Const(np.random.default_rng(0).normal(size=(SIZE, SIZE)).astype("f4"))
    x, y = net(3)
    v = cg.Var((SIZE, SIZE), name="v")
    y = cg.relu((x @ whole) + y if updates_first else y @ whole)
    plain = cg.compile(y, x)(VALUE)
    function = cg.compile(y, x, updates={v: whole}, weights=StreamedWeights(str(tmp_path / "w"), 2 * NBYTES))
    for _ in range(3):
        np.testing.assert_array_equal(function(VALUE), plain)
        np.testing.assert_array_equal(v.value, whole.op.array)
    assert function.program.code.ring.pieces


def test_constants_that_rows_of_update_edges_read_stay_in_memory(tmp_path):
    """Those rows run when the ring may hold something else. Lowering copies constants for them: here they are moved."""
    code = compiled(tmp_path / "w").program.code
    last_reads = sorted(p.last for p in code.ring.pieces)
    for step in range(1, len(code.first_row)):
        pieces = pieces_of(replace(code, first_write=step), place_in_file)
        assert [p.last for p in pieces] == [row for row in last_reads if row < code.first_row[step]]


# -- checksums --------------------------------------------------------------------------------------------------------


@pytest.fixture
def blind(monkeypatch):
    """Nothing is looked at but checksums."""
    monkeypatch.setattr(readers, "check_stamp", lambda *_: None)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("ring", [1.0, 2.0, 40.0])
def test_runs_that_compare_checksums_have_the_same_bits(tmp_path, ring, threads):
    x, y = net()
    weights = StreamedWeights(str(tmp_path / "w"), pages(ring * NBYTES), verify=True)
    function = cg.compile(y, x, weights=weights, threads=threads)
    for _ in range(4):
        np.testing.assert_array_equal(function(VALUE), want())


def pages(nbytes: float) -> int:
    return -(-int(nbytes) // PAGE) * PAGE


@pytest.mark.parametrize("where", ["first byte", "last byte"])
@pytest.mark.parametrize("piece", range(2 * LAYERS))  # each matrix is two slices
def test_damage_in_any_piece_is_named_when_checksums_are_compared(tmp_path, make, blind, piece, where):
    function = make(tmp_path / "w", verify=True)
    code, path = function.program.code, file_of(function)
    entry = code.ring.pieces[piece]
    at = entry.offset + (0 if where == "first byte" else code.constants[entry.constant].nbytes - 1)
    function(VALUE)
    flip(path, at)
    with pytest.raises(WeightsError, match=f"piece {piece + 1} of the weights does not match the checksum"):
        for _ in range(2):  # the first may still have it in the ring
            function(VALUE)
    flip(path, at)
    for _ in range(2):  # as it was written: the next runs start anew
        np.testing.assert_array_equal(function(VALUE), want())


def test_no_kernel_gets_a_piece_before_it_is_compared(tmp_path, blind, monkeypatch):
    """A run that is refused has freed no piece from the damaged one on."""
    function = compiled(tmp_path / "w", verify=True)
    flip(tmp_path / "w", function.program.code.ring.pieces[1].offset)
    with pytest.raises(WeightsError, match="piece 2"):
        function(VALUE)
    words = function._idle[-1].instance.reader.words
    assert words[readers.READ] == 1 and words[readers.FREED] <= 1


def test_without_being_asked_nobody_compares(tmp_path, make, blind):
    function = make(tmp_path / "w")
    flip(file_of(function), function.program.code.ring.pieces[0].offset + 1003)
    assert (function(VALUE) != want()).any()


def test_a_constant_of_the_file_that_no_piece_has_is_copied_and_compared(tmp_path, blind):
    """Lowering copies what update edges read. Here the pieces are taken out of the ring."""
    function = compiled(tmp_path / "w", verify=True)
    code = function.program.code
    piece, *others = code.ring.pieces
    array = np.array(code.constants[piece.constant])
    for is_damaged in (False, True):
        if is_damaged:
            flip(file_of(function), piece.offset + 5)
        instance = object.__new__(StreamedInstance)
        instance.reader, instance.pieces = readers.Reader(code.ring, None), {p.constant: p for p in others}
        instance.code, instance._copies = code, []
        if is_damaged:
            with pytest.raises(WeightsError, match="does not match the checksum"):
                instance._address_of_constant(piece.constant)
            continue
        address = instance._address_of_constant(piece.constant)
        (copy,) = instance._copies
        assert address == copy.ctypes.data
        np.testing.assert_array_equal(copy, array)
        assert [instance._address_of_constant(p.constant) for p in others] == [
            instance.reader.address + p.at for p in others
        ]


def test_a_constant_that_an_update_edge_reads_is_compared_too(tmp_path, blind):
    function, _, whole = copying(tmp_path / "w", verify=True)
    flip(tmp_path / "w", (tmp_path / "w").stat().st_size - pages(whole.nbytes))
    with pytest.raises(WeightsError, match="does not match the checksum"):
        function()


def test_checksums_are_those_of_what_was_compiled_not_of_what_the_file_says(tmp_path, blind):
    """A file whose table is right and whose arrays are damaged is taken as it is; then its pieces are refused."""
    compiled(tmp_path / "w")
    flip(tmp_path / "w", (tmp_path / "w").stat().st_size - 2 * PAGE)
    with pytest.raises(WeightsError, match="does not match the checksum"):
        compiled(tmp_path / "w", verify=True)(VALUE)


# -- the file that is compared is the file that is used ---------------------------------------------------------------


def test_the_file_that_is_mapped_is_the_one_whose_table_was_compared(tmp_path, monkeypatch):
    """Another one takes its place between writing and mapping: a WeightsError, not its numbers."""
    replace = os.replace

    def with_another(old: str, new: str) -> None:
        replace(old, new)
        damage = bytearray(Path(new).read_bytes())
        damage[PAGE + 20] ^= 1
        Path(new).write_bytes(damage)

    monkeypatch.setattr(os, "replace", with_another)
    with pytest.raises(WeightsError, match="another process replaced the file"):
        compiled(tmp_path / "w")


def test_a_reader_whose_end_comes_in_its_own_thread_ends_and_closes_its_file(tmp_path, monkeypatch):
    """The garbage collector runs in whatever thread it is due."""
    function = compiled(tmp_path / "w", verify=True)
    reader = readers.Reader(function.program.code.ring, None)
    native, work, problems = pools.native(), reader._work, []

    def read(*args: int) -> int:
        try:
            work.close()
        except RuntimeError as error:
            problems.append(error)
        return native.read(*args)

    monkeypatch.setattr(readers, "native", lambda: SimpleNamespace(read=read, halt=native.halt))
    reader.begin(StreamedInstance(function.program, function.program.code.ring).whole)
    work.thread.join(PATIENCE)
    assert not problems and not work.is_running and reader.file.closed
