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
