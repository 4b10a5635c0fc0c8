import numpy as np
import pytest

from nn.loader import Loader, SampleSource, random_shift, sample_order

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


@pytest.mark.parametrize("shards", [1, 2, 3, 4])
@pytest.mark.parametrize("partial", [False, True])
def test_shards_are_the_batch_in_about_equal_parts(shards, partial):
    data = Loader((X,), 4, seed=3, partial=partial)
    for step in range(2 * data.steps_per_epoch):
        parts = [data.shard_at(step, i, shards)[0] for i in range(shards)]
        np.testing.assert_array_equal(np.concatenate(parts), data.at(step)[0])
        counts = [len(x) for x in parts]
        assert max(counts) - min(counts) <= 1


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


def test_a_change_draws_by_seed_step_and_shard_alone():
    """The first shard draws what the whole batch would, because a key ends with its last number above 0."""

    def change(arrays, rng):
        return arrays[0], rng.random(len(arrays[0]))

    def draw(seed, step, shard=0, shards=1):
        return Loader((X,), 4, seed=seed, change=change).shard_at(step, shard, shards)[1][0]

    keys = [(step, *shard) for step in (0, 1, 2) for shard in ((), (1, 2), (2, 4), (3, 4))]
    first = [draw(seed, *key) for seed in (3, 4) for key in keys]
    assert len({*first}) == 2 * len(keys)
    assert [draw(seed, *key) for seed in (3, 4) for key in keys] == first
    assert draw(3, 1, 1, 4) == draw(3, 1, 1, 2)


@pytest.mark.parametrize(("count", "batch", "steps", "rest"), [(10, 4, 2, 2), (8, 4, 2, 0), (4, 4, 1, 0), (5, 1, 5, 0)])
def test_only_a_rest_makes_one_step_more(count, batch, steps, rest):
    for partial in (False, True):
        data = Loader((X[:count],), batch, partial=partial)
        assert (data.count, data.rest, data.steps_per_epoch) == (count, rest, steps + (partial and rest > 0))
        assert len(data.at(data.steps_per_epoch - 1)[0]) == (rest if partial and rest else batch)


def test_several_arrays_of_any_layout_have_the_same_samples_in_rows():
    """Columns of a larger array, rows in reverse, a source that is asked by numbers."""

    class Source(SampleSource):
        def __len__(self):
            return 10

        def read(self, numbers):
            return numbers * 2

    wide = np.arange(20).reshape(2, 10).T
    data = Loader((wide, X[::-1], Source()), 3, seed=5)
    for step in range(4):
        pairs, backward, doubled = data.at(step)
        assert pairs.flags.c_contiguous and backward.flags.c_contiguous
        assert (pairs[:, 1] == pairs[:, 0] + 10).all() and (backward[:, 0] == 9 - pairs[:, 0]).all()
        assert (doubled == 2 * pairs[:, 0]).all()


def test_between_yields_the_steps_from_the_first_to_the_one_before_the_last():
    data = Loader((X,), 4, seed=3)
    for first, stop in ((0, 5), (3, 4), (2, 2)):
        steps = [x[0].tolist() for x in data.between(first, stop)]
        assert steps == [data.at(i)[0].tolist() for i in range(first, stop)]


@pytest.mark.parametrize("pixels", [0, 1, 2])
def test_a_random_shift_goes_as_far_down_as_across_and_all_ways_alike(pixels):
    """Of pictures with different numbers of rows and columns, and several channels."""
    images = np.random.default_rng(1).random((400, 2, 4, 6)).astype("f4")
    moved, labels = random_shift(pixels)((images, np.arange(400)), np.random.default_rng(0))
    wide = np.pad(images, [(0, 0), (0, 0), (pixels, pixels), (pixels, pixels)])
    shifts = [
        (r, s)
        for image, whole in zip(moved, wide)
        for r in range(2 * pixels + 1)
        for s in range(2 * pixels + 1)
        if np.array_equal(image, whole[:, r : r + 4, s : s + 6])
    ]
    assert len(shifts) == 400 and len(set(shifts)) == (2 * pixels + 1) ** 2
    assert moved.dtype == np.float32 and labels.tolist() == list(range(400))


@pytest.mark.parametrize(("seed", "epoch"), [(0, 0), (0, 1), (1, 0), (3, 1)])
def test_an_order_is_drawn_by_seed_then_epoch(seed, epoch):
    """A run that is resumed by another version reads the same samples."""
    rows = np.random.default_rng([seed, epoch])
    assert sample_order("shuffled", 9, seed, epoch).tolist() == rows.permutation(9).tolist()
    rows = np.random.default_rng([seed, epoch])
    assert sample_order("sampled", 9, seed, epoch).tolist() == rows.integers(0, 9, 9).tolist()
    assert sample_order("given", 3, seed, epoch).tolist() == [0, 1, 2]


def test_a_source_may_return_any_order_of_memory_and_a_batch_may_be_all_samples():
    class Source(SampleSource):
        def __len__(self):
            return 4

        def read(self, numbers):
            return np.asfortranarray(np.stack([numbers, -numbers], 1))

    data = Loader((Source(),), 4, order="given")
    (rows,) = data.at(0)
    assert data.steps_per_epoch == 1 and rows.flags.c_contiguous and rows[:, 1].tolist() == [0, -1, -2, -3]


def test_a_random_shift_leaves_all_other_arrays_alone():
    others = np.arange(3), np.ones((3, 2, 2)), "text"
    moved, *rest = random_shift(1)((np.zeros((3, 1, 2, 2)), *others), np.random.default_rng(0))
    assert moved.shape == (3, 1, 2, 2) and len(rest) == 3 and all(x is y for x, y in zip(rest, others))


def test_a_random_shift_draws_rows_and_columns_for_each_picture_in_turn():
    images = np.random.default_rng(1).random((5, 1, 3, 4))
    moved, _ = random_shift(2)((images, None), np.random.default_rng(7))
    wide = np.pad(images, [(0, 0), (0, 0), (2, 2), (2, 2)])
    places = np.random.default_rng(7).integers(0, 5, (5, 2))
    assert len({*map(tuple, places)}) > 3 and (places[:, 0] != places[:, 1]).any()
    for picture, whole, (r, s) in zip(moved, wide, places):
        np.testing.assert_array_equal(picture, whole[:, r : r + 3, s : s + 4])
