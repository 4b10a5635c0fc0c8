"""Batches of any origin: the ones that training would read from arrays, in order, read ahead or not."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import nn
from cgraph import InputError
from nn.batches import BatchReader, read_ahead
from nn.loader import Loader, SampleSource
from nn.losses import quadratic
from tests.support.patience import PATIENCE

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(24, 3)).astype("f4"), RNG.normal(size=(24, 2)).astype("f4")
LOADER = Loader((X, Y), 4, seed=3)


def epochs(calls, count=6):
    """A function like `LOADER`, which notes its calls."""

    def of_epoch(epoch):
        calls.append(epoch)
        for i in range(count):
            yield LOADER.at(6 * epoch + i)

    return of_epoch


def train(data, count=2.5, **options):
    model = nn.initialise(nn.Linear(3, 2), 1)
    history = nn.train(model, data, quadratic, epochs=count, engine="reference", progress=False, **options)
    return history.loss, model.weight.value


@pytest.mark.parametrize("prefetch", [0, 1, 3, 100])
def test_training_has_the_bits_of_a_loader_over_the_same_samples(prefetch, tmp_path):
    calls = []
    data = nn.Batches(epochs(calls), 6, prefetch)
    want = train(LOADER)
    for got in (train(data), train(Loader((X, Y), 4, seed=3, prefetch=prefetch))):
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)
    assert calls == [0, 0, 1, 2]  # the first one for the shapes
    point = nn.Checkpoint(tmp_path / "at.json", steps=1)
    train(data, 1.5, checkpoint=point)
    for a, b in zip(train(data, checkpoint=point), want, strict=True):  # resumed within an epoch
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("prefetch", [1, 3])
def test_a_thread_reads_so_many_batches_ahead_and_none_after_the_last_step(prefetch):
    read = []
    data = Loader((X,), 4, change=lambda arrays, rng: read.append(threading.current_thread().name) or arrays,
                  prefetch=prefetch)  # fmt: skip
    reader = BatchReader(data, 5)
    reader.at(0)
    end = time.monotonic() + 60
    while len(read) < 1 + prefetch and time.monotonic() < end:
        time.sleep(0.01)
    assert len(read) == 1 + prefetch and all(name.startswith("batches") for name in read)
    for step in range(1, 5):
        np.testing.assert_array_equal(reader.at(step)[0], data.at(step)[0])
    assert len(read) == 5 + 4  # those of data.at, too
    reader.close()
    assert not any(thread.name.startswith("batches") for thread in threading.enumerate()), "the reader still lives"
    with pytest.raises(StopIteration):
        reader.at(5)


def test_a_reader_begins_anew_at_another_step():
    reader = BatchReader(Loader((X,), 4, prefetch=2), 20)
    for step in (0, 1, 7, 8, 3, 3, 4):
        np.testing.assert_array_equal(reader.at(step)[0], LOADER_OF_X.at(step)[0])
    reader.close()


LOADER_OF_X = Loader((X,), 4)


@pytest.mark.parametrize("prefetch", [0, 2])
def test_an_error_while_reading_reaches_the_caller_and_no_thread_stays(prefetch):
    def of_epoch(epoch):
        yield X[:4], Y[:4]
        yield X[:4], Y[:4]
        raise OSError("the disk is gone")

    before = threading.active_count()
    with pytest.raises(OSError, match="the disk is gone"):
        train(nn.Batches(of_epoch, 6, prefetch))
    assert threading.active_count() == before


@pytest.mark.parametrize("prefetch", [0, 2])
def test_an_epoch_with_too_few_batches_is_refused(prefetch):
    with pytest.raises(InputError, match="epoch 1 has 4 batches, and steps_per_epoch is 6. Lower it"):
        train(nn.Batches(lambda epoch: epochs([], 4 if epoch else 6)(epoch), 6, prefetch))


def test_an_epoch_without_batches_is_refused():
    with pytest.raises(InputError, match="epoch 0 has 0 batches"):
        train(nn.Batches(lambda epoch: (), 6))


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: nn.Batches([], 6), "of_epoch is"),
        (lambda: nn.Batches(epochs([]), 0), "steps_per_epoch is 0"),
        (lambda: nn.Batches(epochs([]), 6, -1), "prefetch is -1"),
        (lambda: Loader((X,), 4, prefetch=-1), "prefetch is -1"),
        (lambda: train(nn.Batches(lambda epoch: [X[:4]], 1)), "a batch is"),
        (lambda: train(iter([])), "Pass an nn.Loader or nn.Batches"),
    ],
)
def test_wrong_arguments_are_refused_by_name(make, match):
    with pytest.raises(InputError, match=match):
        make()


class FromFile(SampleSource):
    """Rows of a mapped file. Changes: notes what is read."""

    array: np.ndarray
    read_rows: list

    def __len__(self):
        return len(self.array)

    def read(self, numbers):
        self.read_rows.extend(numbers.tolist())
        return self.array[numbers]


def test_sources_and_mapped_arrays_are_read_batch_by_batch(tmp_path):
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    source = FromFile(mapped, [])
    data = Loader((source, Y), 4, seed=3)
    assert source.read_rows == []
    data.at(0)
    assert len(source.read_rows) == 4
    for got in (train(data), train(Loader((mapped, Y), 4, seed=3, prefetch=2))):
        for a, b in zip(got, train(LOADER), strict=True):
            np.testing.assert_array_equal(a, b)
    with pytest.raises(InputError, match=r"arrays have \[20, 24\] samples"):
        Loader((source, Y[:20]), 4)


def test_the_end_of_reading_waits_for_the_batch_that_is_read_and_drops_those_after_it(monkeypatch):
    """The thread is within its second batch when the reader ends, and two more are ordered."""
    reads, started, gate = [], threading.Event(), threading.Event()

    class Ending(ThreadPoolExecutor):
        def shutdown(self, wait=True, *, cancel_futures=False):
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            gate.set()
            super().shutdown(wait=wait)

    def batches():
        for i in range(9):
            reads.append(i)
            if i:
                started.set()
                assert gate.wait(PATIENCE)
            yield (X[:i],)

    monkeypatch.setattr("nn.batches.ThreadPoolExecutor", Ending)
    ahead = read_ahead(batches(), 3)
    assert len(next(ahead)[0]) == 0 and started.wait(PATIENCE)
    ahead.close()
    assert reads == [0, 1]


@pytest.mark.parametrize("prefetch", [0, 2])
def test_after_a_batch_that_failed_reading_begins_anew(prefetch):
    failures = [OSError("for a moment")]

    def of_epoch(epoch):
        yield (X[:4],)
        if failures:
            raise failures.pop()
        yield (X[4:8],)

    reader = BatchReader(nn.Batches(of_epoch, 2, prefetch), 2)
    reader.at(0)
    with pytest.raises(OSError, match="for a moment"):
        reader.at(1)
    np.testing.assert_array_equal(reader.at(1)[0], X[4:8])
    reader.close()


def test_lists_are_batches_of_arrays_and_nothing_behind_the_last_batch_is_read():
    read = []

    def of_epoch(epoch):
        for i in range(9):
            read.append((epoch, i))
            yield [[[i, epoch]], [i]]

    batches = list(nn.Batches(of_epoch, 3).between(1, 5))
    assert read == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    assert [(x.tolist(), y.tolist()) for x, y in batches] == [
        ([[1, 0]], [1]), ([[2, 0]], [2]), ([[0, 1]], [0]), ([[1, 1]], [1]),
    ]  # fmt: skip
    assert all(type(batch) is tuple for batch in batches)
    assert nn.Batches(of_epoch, 3).at(4)[0].tolist() == [[1, 1]]


def readers():
    return [thread for thread in threading.enumerate() if thread.name.startswith("batches")]


def test_the_thread_ends_when_a_step_fails():
    """The error is still there, and with it everything that it refers to."""
    wrong = X.copy()
    wrong[9] = np.nan
    with pytest.raises(nn.LossError) as error:
        train(Loader((wrong, Y), 4, order="given", prefetch=2))
    assert error.value is not None and not readers()


def test_a_reader_that_begins_anew_has_one_thread():
    reader = BatchReader(Loader((X,), 4, prefetch=2), 20)
    for step in (0, 7, 3):
        reader.at(step)
        assert len(readers()) == 1
    reader.close()
    reader.close()
    assert not readers()
