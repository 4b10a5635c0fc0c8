"""The examples for micro-controllers: what they compute, and the commands that link and run it."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg

MICRO = Path(__file__).resolve().parents[2] / "examples" / "micro"


@pytest.fixture
def micro(monkeypatch):
    """A function that imports an example as it is imported beside the others."""
    monkeypatch.syspath_prepend(MICRO)
    monkeypatch.syspath_prepend(MICRO.parent)
    before = set(sys.modules)
    yield import_module
    for name in set(sys.modules) - before:
        if str(MICRO.parent) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]


def test_points_are_labelled_by_their_circle_and_the_step_learns_them(micro):
    learning = micro("learning")
    points, labels = learning.rings(1)
    assert points.shape == (300, 8, 2) and labels.shape == (300, 8) and np.abs(points).max() <= 1
    np.testing.assert_array_equal(labels, (points**2).sum(2) > np.float32(0.6))
    assert (learning.rings(2)[0] != points).any()
    loss, inputs, updates = learning.training_step()
    assert [x.name for x in inputs] == ["points", "labels"] and [w.name for w in updates] == ["w1", "b1", "w2", "b2"]
    step = cg.compile(loss, inputs, updates, engine="reference")
    losses = [float(step(p, t)) for p, t in zip(points, labels)]
    assert np.mean(losses[-50:]) < np.mean(losses[:50]) / 2


def test_filters_for_a_trial_have_the_shapes_of_the_network_and_deviations_of_their_fans(micro):
    browser, squeezenet = micro("browser"), micro("squeezenet")
    layers = browser.random_layers()
    assert [filters.shape for filters, _ in layers] == squeezenet.shapes()
    for filters, bias in layers:
        assert bias.shape == filters.shape[:1] and not bias.any() and filters.dtype == bias.dtype == np.float32
        assert 0.9 < filters.std() * np.sqrt(filters[0].size) < 1.1


@pytest.mark.parametrize(
    ("target", "machine", "script", "processor"),
    [("cortex-m7", "mps2-an500", "an500.ld", "cortex-m7"), ("cortex-m55", "mps3-an547", "an547.ld", "cortex-m55")],
)
def test_a_program_is_linked_with_its_objects_and_run_in_the_folder_of_its_files(
    target, machine, script, processor, micro, monkeypatch, tmp_path
):
    board, calls = micro("board.run"), []

    def run(command, **options):
        calls.append(([str(word) for word in command], options))
        return SimpleNamespace(args=command, returncode=0, stdout=f"said {len(calls)}", stderr="!")

    monkeypatch.setattr(board.shutil, "which", lambda program: program)
    monkeypatch.setattr(board.subprocess, "run", run)
    (tmp_path / "net.o").write_bytes(b"")
    assert board.run_on_board(tmp_path, [Path("main.c"), Path("more.c")], target) == "said 2!"
    (compiler, options), (emulator, more) = calls
    assert compiler[0] == board.COMPILER and f"-mcpu={processor}" in compiler and script in compiler
    assert {f"-I{tmp_path}", "main.c", "more.c", str(tmp_path / "net.o"), str(board.HERE / "start.c")} < set(compiler)
    assert compiler[-2:] == ["-o", str(tmp_path / "program")] and "cwd" not in options
    assert emulator[:3] == [board.EMULATOR, "-M", machine] and emulator[-2:] == ["-kernel", "program"]
    assert more["cwd"] == tmp_path


@pytest.mark.parametrize(("missing", "package"), [(0, "gcc-arm-none-eabi"), (1, "qemu-system-arm")])
def test_a_missing_program_is_named_with_its_package(missing, package, micro, monkeypatch, tmp_path):
    board = micro("board.run")
    program = (board.COMPILER, board.EMULATOR)[missing]
    monkeypatch.setattr(board.shutil, "which", lambda name: None if name == program else name)
    monkeypatch.setattr(board.subprocess, "run", lambda *args, **options: pytest.fail("a command ran"))
    with pytest.raises(SystemExit, match=f"{program} is not installed. Install it with: apt-get install {package}"):
        board.run_on_board(tmp_path, [])


def test_a_command_that_fails_is_told_with_all_that_it_said(micro):
    finish = micro("board.run").finish
    assert finish(subprocess.CompletedProcess(["gcc"], 0, "out", "err")) == "outerr"
    with pytest.raises(RuntimeError, match="gcc ended with 3: outerr"):
        finish(subprocess.CompletedProcess(["gcc"], 3, "out", "err"))
