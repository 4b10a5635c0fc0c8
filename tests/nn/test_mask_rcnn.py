"""Mask R-CNN: matching, sampling, masks, a training step, batches and pictures."""

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph import InputError
from nn.models.mask_rcnn import Training
from nn.models.mask_rcnn.losses import PARTS, total
from nn.models.mask_rcnn.pictures import network_view
from nn.models.mask_rcnn.shapes import shapes_config, shapes_network
from nn.models.mask_rcnn.targets import mask_targets, match_boxes, sample_boxes
from nn.models.mask_rcnn.tools.batches import as_operands, positions
from nn.models.mask_rcnn.tools.synthetic import OBJECTS, synthetic_images
from nn.models.mask_rcnn.tools.train_shapes import optimiser
from tests.support.tolerance import assert_near


def run(*nodes):
    found = cg.compile(list(nodes))()
    return found if len(nodes) > 1 else found[0]


# -- targets -----------------------------------------------------------------------------------------------------------


def test_matching_takes_the_best_object_and_all_that_are_best_for_an_object():
    overlaps = np.array([[[0.8, 0.1], [0.5, 0.2], [0.1, 0.2], [0.29, 0.0]]], "float32")
    whose, positive, negative = run(*match_boxes(cg.Const(overlaps), cg.Const([[True, True]]), 0.3, 0.7, True))
    np.testing.assert_array_equal(whose, [[0, 0, 1, 0]])
    np.testing.assert_array_equal(positive, [[True, True, True, False]])  # both that share the second's best
    np.testing.assert_array_equal(negative, [[False, False, False, True]])


def test_without_objects_everything_is_negative():
    overlaps = cg.Const(np.full((1, 5, 2), 0.9, "float32"))
    _, positive, negative = run(*match_boxes(overlaps, cg.Const([[False, False]]), 0.3, 0.7, True))
    assert not positive.any() and negative.all()


@pytest.mark.parametrize(("positives", "negatives"), [(30, 100), (3, 100), (0, 100), (10, 5), (0, 0)])
def test_samples_have_no_repetition_and_positives_first(positives, negatives):
    kinds = np.random.default_rng(1).permutation(
        [1] * positives + [-1] * negatives + [0] * (200 - positives - negatives)
    )
    positive, negative = cg.Const(kinds[None] > 0), cg.Const(kinds[None] < 0)
    key, size, most = cg.Const(cg.random_key(5)), 64, 16
    places, hit, there = (x[0] for x in run(*sample_boxes(positive, negative, key, size, most)))
    again = run(*sample_boxes(positive, negative, cg.Const(cg.random_key(5)), size, most))[0][0]
    other = run(*sample_boxes(positive, negative, cg.Const(cg.random_key(6)), size, most))[0][0]
    assert len(set(places)) == size
    assert hit.sum() == min(positives, most) and hit[: hit.sum()].all()
    assert there.sum() == min(hit.sum() + negatives, size)
    assert (kinds[places[hit]] == 1).all() and (kinds[places[there & ~hit]] == -1).all()
    np.testing.assert_array_equal(places, again)
    assert positives + negatives == 0 or (places != other).any()


@pytest.mark.parametrize("kind", ["cells", "corners"])
def test_the_share_of_an_object_in_each_cell_is_what_boxes_see_of_its_mask(kind):
    data = synthetic_images(0, 3, 2)
    rng = np.random.default_rng(0)
    low = rng.uniform(-5, 100, (2, 6, 2)).astype("float32")
    boxes = np.concatenate([low, low + rng.uniform(1, 60, (2, 6, 2)).astype("float32")], 2)
    whose = rng.integers(0, 3, (2, 6))
    samples = 2 if kind == "cells" else 1
    got = run(mask_targets(cg.Const(data.owner), cg.Const(boxes), cg.Const(whose), 7, (kind, samples)))
    masks = np.stack([data.owner == i + 1 for i in range(OBJECTS)], 1).reshape(-1, 1, 128, 128).astype("float32")
    batch = (np.arange(2)[:, None] * OBJECTS + whose).ravel()
    want = cg.roi_align_levels([masks], boxes.reshape(-1, 4), batch, batch * 0, (7, 7), (1.0,), samples, kind)
    assert_near(got.reshape(12, 1, 7, 7), run(want), "float32 crops")


# -- training ----------------------------------------------------------------------------------------------------------


def operands(count: int, objects: bool = True):
    data = synthetic_images(0, 0, count)
    arrays = as_operands(shapes_config(), tuple(data))
    return arrays if objects else (*arrays[:2], *(np.zeros_like(x) for x in arrays[2:]))


def small_step(rate: float = 0.002, **options):
    model = Training(shapes_network(0), OBJECTS)
    change = nn.Optimiser(nn.optim.Adam(), nn.optim.Const(rate), clipping=nn.optim.ClipL2(5.0))
    return model, nn.training_step(model, total, change, operands(2), targets=0, **options)


def test_a_step_reports_its_five_losses_and_pictures_without_objects_do_no_harm():
    model, step = small_step()
    assert step.parts == PARTS
    for there in (True, False):
        loss, _, *parts = step(*operands(2, there))
        assert np.isfinite(parts).all() and abs(sum(parts) - loss) < 1e-4
    assert parts[1] == parts[3] == parts[4] == 0  # no boxes, no masks
    assert all(np.isfinite(x.value).all() for x in model.variables().values())


def test_frozen_layers_stay_and_the_others_move():
    frozen = ("model.trunk", "model.lateral")
    model = Training(shapes_network(0), OBJECTS)
    trained = model.parameters(frozen)
    before = {path: x.value for path, x in model.parameters().items()}
    step = nn.training_step(model, total, nn.Optimiser(), operands(2), targets=0, trained=trained)
    step(*operands(2))
    moved = {path for path, x in model.parameters().items() if (x.value != before[path]).any()}
    assert moved and not any(path.startswith(frozen) for path in moved)
    assert {path.split(".")[1] for path in moved} == {"smooth", "rpn", "box", "mask"}


@pytest.mark.slow
def test_a_batch_that_is_always_the_same_is_learned():
    _, step = small_step()
    given = operands(2)
    losses = [step(*given)[0] for _ in range(60)]
    assert np.mean(losses[-5:]) < losses[0] / 4


@pytest.mark.slow
def test_training_goes_on_with_the_same_bits(tmp_path):
    def trained(epochs, where):
        model = Training(shapes_network(0), OBJECTS)
        data = nn.Loader(synthetic_images(0, 0, 4), 2, change=positions(shapes_config(), turning=True))
        checkpoint = nn.Checkpoint(tmp_path / where, steps=1)
        history = nn.train(
            model, data, total, optimiser(10), targets=0, epochs=epochs, checkpoint=checkpoint, progress=False
        )
        return history, {path: x.value.tobytes() for path, x in model.variables().items()}

    whole, weights = trained(2, "whole.json")
    trained(1, "parts.json")
    resumed, others = trained(2, "parts.json")
    assert weights == others
    assert {name: x.tobytes() for name, x in whole.parts.items()} == {n: x.tobytes() for n, x in resumed.parts.items()}
    assert set(whole.parts) == set(PARTS) and len(whole.parts[PARTS[0]]) == 4


def test_a_picture_in_any_position_still_has_its_objects_where_it_says():
    config = shapes_config()
    data = synthetic_images(0, 0, 40)
    image, windows, boxes, classes, owner = positions(config, turning=True)(tuple(data), np.random.default_rng(3))
    assert image.min() >= -1 and image.max() <= 1 and (windows == [0, 0, 128, 128]).all()
    assert (owner != data.owner).any()
    for i in range(40):
        for j in np.flatnonzero(classes[i]):
            rows, columns = np.nonzero(owner[i] == j + 1)
            assert [*boxes[i, j]] == [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]


@pytest.mark.parametrize("picture", [np.zeros((4, 4), np.uint8), np.zeros((4, 4, 3)), np.zeros((0, 4, 3), np.uint8)])
def test_what_is_no_picture_is_refused(picture):
    with pytest.raises(InputError, match="a picture is"):
        network_view(picture, shapes_config())
