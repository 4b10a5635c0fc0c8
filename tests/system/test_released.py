"""What an operation opens it closes: descriptors, mappings, threads and files in the making, also when one of the
functions that it calls raises.
"""

import gc
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.formats.npz import read_npy, read_npz, write_npz
from cgraph.formats.safetensors import read_safetensors, write_safetensors
from cgraph.system.files import new_folder, replace_file
from nn.checkpoint import read_checkpoint, write_checkpoint
from tests.support.injection import FOLDERS, Injected, is_forgotten

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's lists of open files"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # raised where Python forgets it
]
POINTS = 30  # calls that fail, of those that an operation makes
REFUSALS = 4  # calls of a function of the system that are refused, one at a time
CLEANING = ("close", "release", "remove", "forget", "__exit__")  # functions that do not fail
TAKING = ("map_regular",)  # what is passed to them is theirs
# a generator may be closed instead of continued: pytest keeps the exception that Python ignores then, with its frames
CLOSED = ("<genexpr>",)
Act = Callable[[], Any]
ACTS: dict[str, Callable[[Path], Act]] = {}


class FailingCall:
    """The exception of one call of a function of the project. Changes: counts calls.

    Fields
        at: number of the call that raises, counted from 1, or the next that may; 0 for none
    """

    def __init__(self, at: int = 0) -> None:
        self.at, self.seen, self.place = at, 0, ""

    def during(self, act: Act) -> bool:
        """Do it; whether the exception reached the caller."""
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            act()
        except Injected:
            return True
        finally:
            sys.settrace(before)
        return False

    def _called(self, frame: FrameType, event: str, _arg: Any) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(FOLDERS) or code.co_name.startswith((*CLEANING, *TAKING, *CLOSED)):
            return
        self.seen += 1
        if 0 < self.at <= self.seen and not is_forgotten(frame):
            self.at, self.place = 0, f"{code.co_filename}:{frame.f_lineno} {code.co_name}"
            raise Injected


def held(folder: Path) -> dict[str, list[str]]:
    """The process's descriptors and threads, and its mappings of files in a folder."""
    maps = {line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/" in line}
    return {
        "descriptors": sorted(links()),
        "mappings": sorted(x for x in maps if x.startswith(str(folder))),
        "threads": sorted(x.name for x in threading.enumerate()),
    }


def is_held_as(before: dict[str, list[str]], folder: Path) -> bool:
    """Whether nothing was added, at the latest after a collection of unreachable objects and the end of threads."""
    patience = 300
    while patience and held(folder) != before:
        gc.collect()
        time.sleep(0.1)
        patience -= 1
    return patience > 0


def links() -> Iterator[str]:
    for name in os.listdir("/proc/self/fd"):
        try:
            yield os.readlink(f"/proc/self/fd/{name}")
        except OSError:  # the descriptor of the list itself
            continue


def names_in(folder: Path) -> set[str]:
    return {str(x.relative_to(folder)) for x in folder.rglob("*")}


def operation(prepare: Callable[[Path], Act]) -> Callable[[Path], Act]:
    ACTS[prepare.__name__] = prepare
    return prepare


def without(path: Path) -> Path:
    """The path, where nothing is any more."""
    shutil.rmtree(path, ignore_errors=True)
    return path


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def small() -> cg.Function:
    x, w = cg.Var((4, 6), name="x"), cg.Var((6, 5), name="w").assign(draw(6, 5))
    return cg.compile(cg.tanh(x @ w) @ cg.Const(draw(5, 3)), x, updates={w: w * 0.5}, threads=1)


def model() -> nn.Layer:
    return nn.initialise(nn.Sequential(nn.Input((6,)), nn.Linear(6, 5), nn.Linear(5, 2)), 0)


@operation
def save_a_function(folder: Path) -> Act:
    function = small()
    return lambda: function.save(without(folder / "saved"))


@operation
def load_a_saved_function(folder: Path) -> Act:
    small().save(folder / "saved")
    return lambda: cg.load(folder / "saved", threads=1)(draw(4, 6))


@operation
def load_into_memory_and_verify(folder: Path) -> Act:
    small().save(folder / "saved")
    return lambda: cg.load(folder / "saved", threads=1, verify=True, in_memory=True)(draw(4, 6))


@operation
def stream_weights(folder: Path) -> Act:
    x = cg.Var((1, 256), name="x")
    y = x @ cg.Const(draw(256, 256)) @ cg.Const(draw(256, 256) + 1)

    def act() -> None:
        weights = cg.StreamedWeights(str(folder / "weights"), ring="1MiB", verify=True)
        cg.compile(y, x, weights=weights, threads=1)(draw(1, 256))

    return act


@operation
def check_a_weight_file(folder: Path) -> Act:
    stream_weights(folder)()
    return lambda: cg.check_weights(folder / "weights")


@operation
def write_safe_tensors(folder: Path) -> Act:
    return lambda: write_safetensors(folder / "a.safetensors", {"a": draw(3, 4), "b": draw(2)})


@operation
def read_safe_tensors(folder: Path) -> Act:
    write_safetensors(folder / "a.safetensors", {"a": draw(3, 4)})
    return lambda: read_safetensors(folder / "a.safetensors")["a"].sum()


@operation
def write_an_archive(folder: Path) -> Act:
    return lambda: write_npz(folder / "a.npz", {"a": draw(3, 4), "b": draw(2)})


@operation
def read_an_archive(folder: Path) -> Act:
    np.savez_compressed(folder / "a.npz", a=draw(3, 4), b=draw(2))
    return lambda: read_npz(folder / "a.npz")


@operation
def read_an_array(folder: Path) -> Act:
    np.save(folder / "a.npy", draw(3, 4))
    return lambda: read_npy(folder / "a.npy")


@operation
def replace_a_file(folder: Path) -> Act:
    return lambda: replace_file(folder / "a", [b"one", b"two"])


@operation
def fill_a_new_folder(folder: Path) -> Act:
    def act() -> None:
        with new_folder(without(folder / "new")) as place:
            replace_file(place / "a", [b"one"])

    return act


@operation
def export_a_function(folder: Path) -> Act:
    x = cg.Var((4,), name="x")
    return lambda: cg.export(cg.tanh(x) * 2, x, folder=without(folder / "exported"), target="cortex-m4")


@operation
def save_the_weights_of_a_model(folder: Path) -> Act:
    net = model()
    return lambda: nn.save_weights(folder / "w.safetensors", net, "float16")


@operation
def map_the_weights_of_a_model(folder: Path) -> Act:
    nn.save_weights(folder / "w.safetensors", model())
    return lambda: nn.load_weights(folder / "w.safetensors", model(), mapped=True)


@operation
def write_and_read_a_checkpoint(folder: Path) -> Act:
    def act() -> None:
        write_checkpoint(folder / "c.json", {"a": draw(3)}, {"step": 4})
        assert read_checkpoint(folder / "c.json") is not None

    return act


@operation
def train_with_samples_read_ahead(folder: Path) -> Act:
    arrays = draw(24, 6), (draw(24) > 0).astype("int32")

    def act() -> None:
        data = nn.Loader(arrays, batch=8, prefetch=2)
        nn.train(model(), data, epochs=1, checkpoint=nn.Checkpoint(folder / "run.json"), engine="reference")

    return act


@operation
def write_a_trace(folder: Path) -> Act:
    function = small()
    return lambda: function.trace(folder / "trace.json", draw(4, 6))


@pytest.mark.parametrize("name", ACTS)
def test_what_is_opened_is_closed(name, tmp_path):
    act = ACTS[name](tmp_path)
    act()  # what is loaded or started once for all
    gc.collect()
    before = held(tmp_path)
    act()
    assert is_held_as(before, tmp_path), held(tmp_path)


@pytest.mark.parametrize("name", ACTS)
def test_what_is_opened_is_closed_when_a_call_fails(name, tmp_path):
    act = ACTS[name](tmp_path)
    act()
    counted = FailingCall()
    assert not counted.during(act)
    gc.collect()
    before, names, raised = held(tmp_path), names_in(tmp_path), 0
    for at in np.unique(np.linspace(1, counted.seen, POINTS).astype(int)).tolist():
        failing = FailingCall(at)
        raised += failing.during(act)
        assert is_held_as(before, tmp_path), f"{failing.place}: {held(tmp_path)}"
        assert names_in(tmp_path) <= names, failing.place
    assert raised
    act()
    assert names_in(tmp_path) <= names


class Refused:
    """A function of the system that refuses one call. Changes: counts calls."""

    def __init__(self, function: Callable[..., Any], at: int) -> None:
        self.function, self.at, self.seen = function, at, 0

    def __call__(self, *args: Any, **named: Any) -> Any:
        self.seen += 1
        if self.seen == self.at:
            raise OSError("refused")
        return self.function(*args, **named)


WRITING = [name for name in ACTS if name.startswith(("save", "write", "replace", "fill", "export"))]


@pytest.mark.parametrize("refused", ["fsync", "replace", "rename", "fstat"])
@pytest.mark.parametrize("name", WRITING)
def test_nothing_is_left_of_a_file_that_the_system_refuses(name, refused, tmp_path, monkeypatch):
    act = ACTS[name](tmp_path)
    act()
    gc.collect()
    before, names = held(tmp_path), names_in(tmp_path)
    for at in range(1, REFUSALS + 1):
        refusing = Refused(getattr(os, refused), at)
        with monkeypatch.context() as changed:
            changed.setattr(os, refused, refusing)
            with suppress(OSError, cg.CgraphError):
                act()
        if refusing.seen < at:
            break
        assert is_held_as(before, tmp_path), held(tmp_path)
        assert names_in(tmp_path) <= names
