"""Functions over the rows of dask arrays: the rows that one process gives, however they are cut."""

import os
import threading

import numpy as np
import pytest

pytest.importorskip("dask", reason="dask is not installed")
import dask
import dask.array as da

import cgraph as cg
from cgraph.dist import folders
from cgraph.errors import FormatError, GraphError, InputError, UnavailableError
from tests.support.patience import PATIENCE
from tests.support.stores import STORES

BATCH = 4
rng = np.random.default_rng(0)
X = rng.standard_normal((23, 3, 5)).astype(np.float32)
Z = rng.standard_normal((23, 2)).astype(np.float32)
W = rng.standard_normal((15, 7)).astype(np.float32)


@pytest.fixture(scope="module")
def graph():
    x, z = cg.Var((BATCH, 3, 5), name="x"), cg.Var((BATCH, 2), name="z")
    return [cg.tanh(cg.reshape(x, (BATCH, 15)) @ W), cg.sum(z, axis=1)], [x, z]


@pytest.fixture(scope="module")
def both(graph):
    return cg.compile(*graph)


@pytest.fixture(scope="module")
def one(graph):
    outputs, (x, _) = graph
    return cg.compile(outputs[0], x)


@pytest.fixture(scope="module")
def want(both):
    """Batch by batch, the last one filled up."""
    room = [np.zeros((24, *x.shape[1:]), x.dtype) for x in (X, Z)]
    for whole, x in zip(room, (X, Z)):
        whole[:23] = x
    found = [both(room[0][i : i + BATCH], room[1][i : i + BATCH]) for i in range(0, 24, BATCH)]
    return [np.concatenate(x)[:23] for x in zip(*found)]


CUTS = [(23,), (4, 4, 4, 4, 4, 3), (1,) * 23, (9, 0, 14), (22, 1)]


@pytest.mark.parametrize("store", STORES)
def test_blocks_come_from_files(one, want, store, tmp_path):
    np.testing.assert_array_equal(cg.dist.map_batches(one, STORES[store](X, tmp_path / "x", 5)).compute(), want[0])


@pytest.mark.parametrize("rows", CUTS, ids=str)
def test_rows_have_the_same_bits_however_they_are_cut(both, want, rows):
    x, z = da.from_array(X, chunks=(rows, 3, 5)), da.from_array(Z, chunks=(7, 1))
    found = cg.dist.map_batches(both, x, z)
    assert [y.shape for y in found] == [(23, 7), (23,)]
    assert [y.dtype for y in found] == [np.float32] * 2
    for got, known in zip(dask.compute(*found), want):
        np.testing.assert_array_equal(got, known)


def test_blocks_along_other_axes_are_put_together(one, want):
    found = cg.dist.map_batches(one, da.from_array(X, chunks=(5, (1, 2), (2, 3))))
    np.testing.assert_array_equal(found.compute(), want[0])
    np.testing.assert_array_equal(found[3:9, 2].compute(), want[0][3:9, 2])


def test_no_rows_and_rows_of_unknown_number(one, want):
    x = da.from_array(X, chunks=6)
    assert cg.dist.map_batches(one, x[:0]).compute().shape == (0, 7)
    chosen = X[:, 0, 0] > 0
    found = cg.dist.map_batches(one, x[x[:, 0, 0] > 0]).compute()
    np.testing.assert_array_equal(found, want[0][chosen])


def test_folders_and_factories_travel_too(one, want, tmp_path):
    one.save(tmp_path / "folder")
    x = da.from_array(X, chunks=(6, 3, 5))
    for source in (
        tmp_path / "folder",
        str(tmp_path / "folder"),
        cg.load(tmp_path / "folder", trust=True),
        lambda: one,
    ):
        np.testing.assert_array_equal(cg.dist.map_batches(source, x).compute(), want[0])


def test_a_process_opens_a_function_once_for_all_its_threads(one, want, monkeypatch):
    opened = []
    known = folders.Shipped.opened

    def counted(self, threads):
        opened.append(threading.get_ident())
        return known(self, threads)

    monkeypatch.setattr(folders, "OPENED", folders.Opened())
    monkeypatch.setattr("cgraph.dist.blocks.OPENED", folders.OPENED)
    monkeypatch.setattr(folders.Shipped, "opened", counted)
    found = cg.dist.map_batches(one, da.from_array(X, chunks=(1, 3, 5)))
    np.testing.assert_array_equal(found.compute(scheduler="threads", num_workers=4), want[0])
    assert len(opened) == 1


@pytest.mark.parametrize("threads", [1, 3])
def test_every_call_has_as_many_threads_as_it_is_told(one, want, threads, monkeypatch, tmp_path):
    one.save(tmp_path / "saved")
    asked, real = set(), folders.Shipped.opened
    monkeypatch.setattr("cgraph.dist.blocks.OPENED", folders.Opened())
    monkeypatch.setattr(folders.Shipped, "opened", lambda self, n: asked.add(n) or real(self, n))
    found = cg.dist.map_batches(tmp_path / "saved", da.from_array(X, chunks=(5, 3, 5)), threads=threads)
    np.testing.assert_array_equal(found.compute(scheduler="sync"), want[0])
    assert asked == {threads}


def test_what_does_not_fit_is_refused(one, both, graph, tmp_path):
    x, z = da.from_array(X), da.from_array(Z)
    for arrays, text in (
        ((X,), "from_array"),
        ((x, z), "takes 1 inputs, got 2"),
        ((x.astype("float64"),), r"x expects float32\[any,3,5\], got float64\[23, 3, 5\]"),
        ((x[:, :2],), "x expects"),
    ):
        with pytest.raises(InputError, match=text):
            cg.dist.map_batches(one, *arrays)
    with pytest.raises(InputError, match="23, 22 rows"):
        cg.dist.map_batches(both, x, z[:22])
    with pytest.raises(InputError, match="not a compiled function"):
        cg.dist.map_batches(3, x)
    with pytest.raises(InputError, match="the factory gave 3"):
        cg.dist.map_batches(lambda: 3, x)
    with pytest.raises(FormatError, match="No such file"):
        cg.dist.map_batches(tmp_path / "nothing", x)


@pytest.mark.parametrize("part", ["folder", "manifest.json", "kernels", "interpreter", "program", "constants"])
def test_a_folder_that_others_can_write_is_refused_unless_it_is_trusted(one, want, part, tmp_path):
    """Each of its files, by the rules of `cgraph.load`: it holds machine code."""
    one.save(tmp_path / "saved")
    name = next((x for x in (tmp_path / "saved").iterdir() if x.name.startswith(part)), tmp_path / "saved")
    name.chmod(0o777 if name.is_dir() else 0o666)
    x = da.from_array(X, chunks=(5, 3, 5))
    for load in (cg.load, lambda folder: cg.dist.map_batches(folder, x)):
        with pytest.raises(FormatError, match=f"{name} may have been written by others"):
            load(tmp_path / "saved")
    found = cg.dist.map_batches(tmp_path / "saved", x, trust=True)
    np.testing.assert_array_equal(found.compute(scheduler="sync"), want[0])


def test_links_and_damage_in_a_folder_are_refused(one, tmp_path):
    one.save(tmp_path / "saved")
    path = next((tmp_path / "saved").glob("kernels*"))
    raw = path.read_bytes()
    path.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    with pytest.raises(FormatError, match="is not what was saved"):
        cg.dist.map_batches(tmp_path / "saved", da.from_array(X))
    path.rename(tmp_path / "other")
    path.symlink_to(tmp_path / "other")
    with pytest.raises(FormatError, match="symbolic links"):
        cg.dist.map_batches(tmp_path / "saved", da.from_array(X), trust=True)


def test_functions_without_one_batch_or_with_a_past_are_refused(graph):
    outputs, (x, z) = graph
    total = cg.Var((), name="total").assign(0.0)
    counting = cg.compile(outputs[0], x, updates={total: total + cg.sum(x)})
    with pytest.raises(GraphError, match="updates 1 Vars"):
        cg.dist.map_batches(counting, da.from_array(X))
    with pytest.raises(GraphError, match="begin with one batch"):
        cg.dist.map_batches(cg.compile(cg.sum(x), x), da.from_array(X))


def test_without_dask_it_says_what_to_install(one, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "dask.array", None)
    with pytest.raises(UnavailableError, match=r"pip install 'cgraph-engine\[dist\]'"):
        cg.dist.map_batches(one, None)


def test_it_is_a_package_of_its_own_that_loads_no_dask():
    import subprocess
    import sys

    code = "import sys, cgraph.dist, nn; print([x for x in ('dask', 'distributed') if x in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, timeout=PATIENCE
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_results_of_any_rank_have_their_shapes_and_dtypes_before_they_are_computed():
    x = cg.Var((BATCH, 3, 5), name="x")
    rows = [cg.sum(x, (1, 2)), cg.transpose(x, (0, 2, 1)), cg.argmax(x, 2), cg.reshape(x * 2, (BATCH, 1, 5, 3))]
    found = cg.dist.map_batches(cg.compile(rows, [x]), da.from_array(X, chunks=(9, 2, 5)))
    assert [y.shape for y in found] == [(23,), (23, 5, 3), (23, 3), (23, 1, 5, 3)]
    assert [y.dtype for y in found] == ["f4", "f4", rows[2].dtype, "f4"]
    assert [y.numblocks for y in found] == [(3,), (3, 1, 1), (3, 1), (3, 1, 1, 1)]
    got = dask.compute(*found, scheduler="sync")
    for y, want in zip(got[1:], (X.transpose(0, 2, 1), X.argmax(2), X.reshape(23, 1, 5, 3) * 2)):
        np.testing.assert_array_equal(y, want)
    np.testing.assert_array_equal(got[0], cg.dist.map_batches(cg.compile(rows[0], x), da.from_array(X)).compute())


def unequal_batches():
    x, z = cg.Var((4, 3), name="x"), cg.Var((8, 3), name="z")
    return cg.compile(x + z[:4], [x, z])


def a_number_among_inputs():
    x, factor = cg.Var((4, 3), name="x"), cg.Var((), name="factor")
    return cg.compile(x * factor, [x, factor])


def no_inputs():
    return cg.compile(cg.Const(np.ones((4, 3), "f4")) * 1, [])


def a_batch_of_nothing():
    x = cg.Var((0, 3), name="x")
    return cg.compile(x + 1, x)


@pytest.mark.parametrize("made", [unequal_batches, a_number_among_inputs, no_inputs, a_batch_of_nothing])
def test_batches_that_differ_or_are_missing_are_refused(made):
    function = made()
    with pytest.raises(GraphError, match="begin with one batch"):
        cg.dist.map_batches(function, *(da.ones(x.spec.shape, dtype=x.spec.dtype) for x in function.inputs))


def test_numbers_of_rows_that_are_not_known_do_not_fit_one_another(both):
    x, z = da.from_array(X, chunks=6), da.from_array(Z, chunks=6)
    for arrays in ((x[x[:, 0, 0] > 0], z[z[:, 0] > 0]), (x, z[z[:, 0] > 9])):
        with pytest.raises(
            InputError, match=r"nan rows. Give each the same known number, with compute_chunk_sizes\(\)"
        ):
            cg.dist.map_batches(both, *arrays)
    with pytest.raises(InputError, match=r"row expects float32\[any\], got float32\[\]"):
        row = cg.Var((4,), name="row")
        cg.dist.map_batches(cg.compile(row + 1, row), da.ones((), dtype="f4"))


def test_arrays_of_one_function_share_its_task(one, graph):
    """So a worker gets its bytes once."""
    x, key = da.from_array(X, chunks=5), f"cgraph-{folders.ship(one).key}"
    for function in (one, cg.compile(graph[0][0], graph[1][0])):
        assert key in dict(cg.dist.map_batches(function, x).dask)


def test_a_function_of_a_list_of_one_gives_a_tuple_of_one(graph, want):
    outputs, (x, _) = graph
    (found,) = cg.dist.map_batches(cg.compile(outputs[:1], x), da.from_array(X, chunks=(5, 3, 5)))
    np.testing.assert_array_equal(found.compute(), want[0])
