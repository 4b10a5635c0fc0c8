import numpy as np
import pytest

from nn.loader import Loader, random_shift

X = np.arange(10, dtype=np.float32)[:, None]


@pytest.mark.parametrize("order", ["shuffled", "given"])
@pytest.mark.parametrize("partial", [False, True])
def test_an_epoch_has_each_sample_once(order, partial):
    data = Loader((X,), 4, order, partial=partial)
    assert data.steps_per_epoch == (3 if partial else 2)
    samples = np.concatenate([data.at(i)[0] for i in range(data.steps_per_epoch)]).ravel()
    assert len(samples) == (10 if partial else 8) and len(set(samples)) == len(samples)
    if order == "given":
        assert samples.tolist() == list(range(len(samples)))


def test_samples_drawn_with_repetition_are_of_the_data_and_repeat():
    data = Loader((X,), 5, "sampled")
    epochs = [np.concatenate([data.at(2 * epoch + i)[0] for i in range(2)]).ravel() for epoch in range(20)]
    assert any(len(set(samples)) < 10 for samples in epochs)
    assert set(np.concatenate(epochs)) == set(X.ravel())
    assert any(samples.tolist() != epochs[0].tolist() for samples in epochs)


@pytest.mark.parametrize("shards", [1, 2, 4])
def test_shards_are_the_batch_in_parts(shards):
    data = Loader((X,), 4, seed=3)
    for step in range(5):
        parts = [data.shard_at(step, i, shards)[0] for i in range(shards)]
        np.testing.assert_array_equal(np.concatenate(parts), data.at(step)[0])


def test_the_order_depends_on_seed_and_epoch_alone():
    one, other = Loader((X,), 5, seed=1), Loader((X,), 5, seed=2)
    assert all((one.at(i)[0] == Loader((X,), 5, seed=1).at(i)[0]).all() for i in range(4))
    assert any((one.at(i)[0] != other.at(i)[0]).any() for i in range(4))
    assert any((one.at(i)[0] != one.at(i + 2)[0]).any() for i in range(2))


def test_shifted_pictures_are_the_same_pixels_elsewhere():
    images = np.ones((6, 1, 5, 5), np.float32)
    moved, labels = random_shift(2)((images, np.arange(6)), np.random.default_rng(0))
    assert moved.shape == images.shape and labels.tolist() == list(range(6))
    for picture in moved[:, 0]:
        rows, columns = np.nonzero(picture)
        assert len(rows) == len(set(rows)) * len(set(columns)) >= 9


def test_the_text_of_a_loader_has_sizes_and_no_samples():
    loader = Loader((np.zeros((8, 3), "float32"), np.zeros(8, "int64")), batch=4)
    assert repr(loader) == "<Loader of 8 samples: float32[3], int64[]; batches of 4, shuffled>"
