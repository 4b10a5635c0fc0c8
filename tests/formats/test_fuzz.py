"""The fuzzer notices what it should, and the readers stand a short run of it; docs/fuzzing.md has a long one."""

import os
import signal
from random import Random
from threading import Timer

import pytest

from benchmarks.fuzz import campaign, child
from benchmarks.fuzz.campaign import kind_of, run, smaller
from benchmarks.fuzz.child import Child, Outcome
from benchmarks.fuzz.readers import READERS

FILES = 150  # of each reader
APART = 6  # of the one that needs a process for each file


@pytest.mark.parametrize(
    ("reader", "kind"),
    [
        ("model", "model"),
        ("refused", "refused"),
        ("untyped", "untyped"),
        ("memory", "memory"),
        ("memory at once", "untyped"),
        ("time", "time"),
        ("crash", "crash"),
    ],
)
def test_whatever_a_reader_does_is_told(tmp_path, reader, kind):
    path = tmp_path / "input"
    path.write_bytes(b"x")
    with Child(reader, "tests.support.misbehaving") as process:
        first, second = process.outcome(path), process.outcome(path)
    assert (first.kind, second.kind) == (kind, kind)
    assert first.is_trouble is (kind not in ("model", "refused"))


@pytest.mark.parametrize("text", ["", "{}", "\0", "a\0b", "\ud800", "\xe4"])
def test_any_text_is_written_into_a_keras_file(text):
    """The fuzzer's own writer: h5py refuses some."""
    keras_files = pytest.importorskip("benchmarks.fuzz.keras_files")
    assert keras_files.written(text, {}).startswith(b"\x89HDF")


def test_a_reader_that_sleeps_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(child, "WALL_SECONDS", 0.1)
    with Child("sleep", "tests.support.misbehaving") as process:
        assert process.outcome(tmp_path).text.startswith("no answer")


def test_a_reader_that_is_stopped_for_longer_than_one_may_sleep_answers_when_it_goes_on(tmp_path, monkeypatch):
    path = tmp_path / "input"
    path.write_bytes(b"x")
    with Child("model", "tests.support.misbehaving") as process:
        process.outcome(path)
        monkeypatch.setattr(child, "WALL_SECONDS", 0.01)
        pid = process.process.pid
        os.kill(pid, signal.SIGSTOP)
        later = Timer(100 * child.WALL_SECONDS, os.kill, (pid, signal.SIGCONT))
        later.start()
        assert process.outcome(path).kind == "model"
        later.join()


@pytest.mark.parametrize("reader", READERS)
def test_the_same_seed_gives_the_same_files(reader):
    samples = READERS[reader].samples()
    sample = samples[0]

    def made(seed):
        return READERS[reader].mutated(sample, Random(seed), samples)

    found = [made(seed) for seed in range(20)]
    if not reader.startswith("h5"):  # HDF5 writes the time of day
        assert found == [made(seed) for seed in range(20)]
    assert len(set(found)) > 10


@pytest.mark.parametrize("reader", READERS)
def test_the_samples_are_read(reader, tmp_path):
    """At least one of a reader's samples is a good file: otherwise its changes would all be refused early."""
    found = []
    with Child(reader) as process:
        for i, sample in enumerate(READERS[reader].samples()[:40]):
            path = tmp_path / str(i)
            path.write_bytes(sample)
            found.append(process.outcome(path).kind)
    assert "model" in found and set(found) <= {"model", "refused"}


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_changed_files_give_a_model_or_a_typed_error(reader):
    found = run(reader, seed=0, count=APART if reader == "h5_apart" else FILES, seconds=None)
    assert not found.troubles, [(t.outcome, t.contents[:200]) for t in found.troubles]


def test_what_goes_wrong_is_made_small(tmp_path, monkeypatch):
    """A file of 200 bytes that goes wrong where it holds a zero byte ends as that byte."""

    class Pretended:
        def outcome(self, path):
            return Outcome("crash" if b"\0" in path.read_bytes() else "model")

    monkeypatch.setattr(campaign, "excused", lambda reader, outcome, path: outcome)
    contents = bytes(range(1, 101)) + b"\0" + bytes(range(1, 101))
    assert smaller(contents, Outcome("crash"), tmp_path / "x", Pretended(), "npz") == b"\0"


def test_troubles_are_told_apart_by_error_and_place():
    one, two = Outcome("untyped", "KeyError in a.py:3 f: 'x'"), Outcome("untyped", "KeyError in a.py:3 f: 'y'")
    assert kind_of(one) == kind_of(two) != kind_of(Outcome("untyped", "KeyError in a.py:4 f: 'x'"))
    assert kind_of(Outcome("memory", "70 MiB")) == kind_of(Outcome("memory", "90 MiB")) != kind_of(Outcome("time", ""))
