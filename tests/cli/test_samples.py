"""Samples from files: a picture is one run, an array one for each batch along its first axis."""

import argparse

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli.samples import run_count, runs_in, runs_of
from cgraph.errors import FormatError

X, SCALE = cg.Var((2, 3), name="x"), cg.Var((), name="scale")


def arguments(path, most=100):
    return argparse.Namespace(samples=path, most=most, pixels="unit", bgr=False, fit="stretch")


def test_an_array_holds_a_run_for_each_batch(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(15.0).reshape(5, 3))
    np.savez(tmp_path / "b.npz", x=np.ones((2, 3)))
    runs = runs_of(arguments(tmp_path), [X], {})
    assert [x.shape for (x,) in runs] == [(2, 3)] * 3 and runs[0][0].dtype == "f4"
    assert runs[1][0].tolist() == [[6, 7, 8], [9, 10, 11]]
    assert len(runs_of(arguments(tmp_path, 1), [X], {})) == 1


def test_constants_are_the_same_in_every_run(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((4, 3)))
    runs = runs_of(arguments(tmp_path / "a.npy"), [X, SCALE], {"scale": np.float32(2)})
    assert [float(scale) for _, scale in runs] == [2, 2]


def test_files_that_do_not_fit_are_refused(tmp_path):
    with pytest.raises(FormatError, match="holds no pictures"):
        runs_of(arguments(tmp_path), [X], {})
    np.savez(tmp_path / "b.npz", x=np.ones((4, 3)), scale=np.ones(()))
    with pytest.raises(FormatError, match="1 and 2 runs"):
        runs_in(tmp_path / "b.npz", arguments(tmp_path), [X, SCALE], {})
    with pytest.raises(FormatError, match="has no array for the input third. Add one"):
        runs_in(tmp_path / "b.npz", arguments(tmp_path), [X, SCALE, cg.Var((2, 3), name="third")], {})
    with pytest.raises(FormatError, match="every input has its value"):
        runs_in(tmp_path / "b.npz", arguments(tmp_path), [X], {"x": np.ones((2, 3))})


@pytest.mark.parametrize(
    ("array", "shape", "count"), [((4, 3), (2, 3), 2), ((3,), (), 1), ((), (2,), 1), ((4,), (0,), 4)]
)
def test_runs_are_counted_along_the_first_axis(array, shape, count):
    assert run_count(np.zeros(array), shape) == count


def test_each_input_has_its_own_batch_and_its_own_dtype(tmp_path):
    inputs = [X, cg.Var((3,), "int32", "n"), SCALE]
    x, n = np.arange(12.0).reshape(4, 3), np.arange(6, dtype="int64")
    np.savez(tmp_path / "a.npz", x=x, n=n, scale=np.float64(7))
    runs = runs_in(tmp_path / "a.npz", arguments(tmp_path), inputs[:2], {})
    assert [[v.tolist() for v in run] for run in runs] == [[x[:2].tolist(), [0, 1, 2]], [x[2:].tolist(), [3, 4, 5]]]
    assert [v.dtype for v in runs[1]] == [np.float32, np.int32]
    np.savez(tmp_path / "b.npz", x=x[:2], n=n[:3], scale=np.float64(7))
    ((_, _, scale),) = runs_in(tmp_path / "b.npz", arguments(tmp_path), inputs, {})
    assert scale.dtype == np.float32 and scale.shape == () and scale == 7


def test_an_array_without_a_name_is_the_first_input_that_has_no_value(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((4, 3)))
    second = cg.Var((4, 3), name="second")
    constant = np.full((2, 3), 5, "f4")
    ((x, found),) = runs_in(tmp_path / "a.npy", arguments(tmp_path), [X, second], {"x": constant})
    assert x is constant and found.tolist() == np.ones((4, 3)).tolist()


def test_integers_are_not_read_from_floats(tmp_path):
    np.save(tmp_path / "a.npy", np.ones(2))
    ((n,),) = runs_in(tmp_path / "a.npy", arguments(tmp_path), [cg.Var((2,), "int32", "n")], {})
    assert n.dtype == np.float64  # which the Function refuses


def test_files_of_all_folders_count_in_their_order_up_to_the_limit(tmp_path):
    (tmp_path / "b").mkdir()
    for name, value in (("c.NPY", 3), ("b/a.npy", 2), ("a.npy", 1), ("a.txt", 9)):
        with open(tmp_path / name, "wb") as file:
            np.save(file, np.full((4, 3), value, "f4"))
    for most in range(1, 8):
        runs = runs_of(arguments(tmp_path, most), [X], {})
        assert [int(x[0, 0]) for (x,) in runs] == [1, 1, 2, 2, 3, 3][:most]


def test_a_run_needs_whole_batches_and_what_is_left_over_does_not_count(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((1, 3)))
    assert runs_in(tmp_path / "a.npy", arguments(tmp_path), [X], {}) == []


def test_files_behind_the_last_run_are_not_read(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((4, 3)))
    (tmp_path / "b.npy").write_bytes(b"no array")
    assert len(runs_of(arguments(tmp_path, 1), [X], {})) == 1
    assert len(runs_of(arguments(tmp_path, 2), [X], {})) == 2
    with pytest.raises(FormatError, match="b.npy"):
        runs_of(arguments(tmp_path, 3), [X], {})
