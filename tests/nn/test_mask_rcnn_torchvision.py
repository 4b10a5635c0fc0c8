"""Mask R-CNN against torchvision's, stage by stage, with the same random weights. Needs torch and torchvision."""

import copy

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.record import replace
from nn.layer import map_parameters
from nn.models.mask_rcnn import losses, mask_rcnn, torchvision_arrays, torchvision_config
from nn.models.mask_rcnn.objects import Detection
from nn.models.mask_rcnn.proposals import proposals
from nn.models.mask_rcnn.targets import match_boxes
from tests.support import torchvision as oracle
from tests.support.tolerance import assert_near

torch = pytest.importorskip("torch")
CLASSES, SIZE = 7, (192, 256)


@pytest.fixture(scope="module")
def theirs():
    """torchvision's network with running statistics that are not those of a beginner, so that features stay finite."""
    try:
        detection = oracle.load().models.detection
    except ImportError as error:
        pytest.skip(str(error))
    torch.manual_seed(0)
    model = detection.maskrcnn_resnet50_fpn(
        weights=None, weights_backbone=None, num_classes=CLASSES, box_score_thresh=0.14, rpn_pre_nms_top_n_test=300,
        rpn_post_nms_top_n_test=100, rpn_pre_nms_top_n_train=300, rpn_post_nms_top_n_train=100,
    )  # fmt: skip
    with torch.no_grad():
        for name, x in model.named_parameters():
            if name.endswith("bias"):
                x.normal_(0, 0.1)
        for name, x in model.named_buffers():
            if name.endswith("running_var"):
                x.fill_(1.5)
        model.rpn.head.cls_logits.weight.normal_(0, 0.1)
        model.rpn.head.bbox_pred.weight.normal_(0, 0.03)
        model.roi_heads.box_predictor.cls_score.weight.normal_(0, 0.05)
        model.roi_heads.box_predictor.bbox_pred.weight.normal_(0, 0.05)
    return model.eval()


@pytest.fixture(scope="module")
def ours(theirs):
    config = replace(
        torchvision_config(SIZE, CLASSES),
        before=300,
        after=100,
        training_before=300,
        training_after=100,
        least_score=0.14,
    )
    model = mask_rcnn(50, None, config)
    nn.set_values(model, torchvision_arrays(arrays_of(theirs), model))
    return model


@pytest.fixture(scope="module")
def image():
    return np.random.default_rng(1).normal(size=(2, 3, *SIZE)).astype("float32")


def arrays_of(model) -> dict[str, np.ndarray]:
    return {name: x.numpy() for name, x in model.state_dict().items()}


def window(n: int) -> np.ndarray:
    return np.tile(np.array([0, 0, SIZE[1], SIZE[0]], "float32"), (n, 1))


def assert_agrees(got: np.ndarray, want: "torch.Tensor | np.ndarray", name: str = "float32 layers") -> None:
    """As near as the tolerance of this name allows."""
    want = np.asarray(want.detach() if hasattr(want, "detach") else want)
    assert got.shape == want.shape
    assert_near(got, want, name)


def test_pyramid_anchors_and_their_numbers(theirs, ours, image):
    x = cg.Var(image.shape)
    raw = ours.raw(x, nn.Mode())
    maps, scores, deltas = (cg.compile(list(found), [x])(image) for found in (raw.maps, raw.scores, raw.deltas))
    with torch.no_grad():
        features = list(theirs.backbone(torch.from_numpy(image)).values())
        objectness, coded = theirs.rpn.head(features)
        images = oracle.load().models.detection.image_list.ImageList(torch.from_numpy(image), [SIZE] * 2)
        anchors = theirs.rpn.anchor_generator(images, features)[0]
    for got, want in zip(maps, features):
        assert_agrees(got, want)
    for got, want in zip(scores, objectness):
        assert_agrees(got, want.permute(0, 2, 3, 1).reshape(2, -1))
    for got, want in zip(deltas, coded):
        assert_agrees(got, want.permute(0, 2, 3, 1).reshape(2, -1, 4))
    np.testing.assert_array_equal(np.concatenate(raw.anchors), anchors)


def test_proposals_are_the_same_ones(theirs, ours, image):
    x, w = cg.Var(image.shape), cg.Var((2, 4))
    raw = ours.raw(x, nn.Mode())
    found = proposals(ours.config, raw.scores, raw.deltas, raw.anchors, w, training=False)
    boxes, counts = cg.compile(list(found), [x, w])(image, window(2))
    with torch.no_grad():
        features = theirs.backbone(torch.from_numpy(image))
        images = oracle.load().models.detection.image_list.ImageList(torch.from_numpy(image), [SIZE] * 2)
        want, _ = theirs.rpn(images, features)
    for i in range(2):
        assert counts[i] == len(want[i])
        assert_agrees(boxes[i, : counts[i]], want[i])


def test_detections_and_masks_are_the_same_ones(theirs, ours, image):
    predict = nn.compile(ours, 2)
    boxes, scores, classes, masks, counts = predict(image, window(2))
    with torch.no_grad():
        features = theirs.backbone(torch.from_numpy(image))
        images = oracle.load().models.detection.image_list.ImageList(torch.from_numpy(image), [SIZE] * 2)
        found, _ = theirs.rpn(images, features)
        want, _ = theirs.roi_heads(features, found, images.image_sizes)
    assert counts.min() > 10
    for i in range(2):
        n = counts[i]
        assert n == len(want[i]["labels"])
        np.testing.assert_array_equal(classes[i, :n], want[i]["labels"])
        assert_agrees(boxes[i, :n], want[i]["boxes"])
        assert_agrees(scores[i, :n], want[i]["scores"])
        assert_agrees(masks[i, :n], want[i]["masks"][:, 0])


def objects():
    """Boxes, classes and owners of two pictures, the second of which has none."""
    boxes = np.zeros((2, 3, 4), "float32")
    boxes[0] = [[10, 20, 90, 120], [100, 30, 230, 160], [60, 60, 100, 100]]
    classes, owner = np.array([[2, 5, 1], [0, 0, 0]]), np.zeros((2, *SIZE), "uint8")
    for i, (x0, y0, x1, y1) in enumerate(boxes[0].astype(int), 1):
        owner[0, y0:y1, x0:x1] = i
    return boxes, classes, owner


def test_matching_is_the_same(theirs, ours, image):
    x = cg.Var(image.shape)
    anchors = np.concatenate(ours.raw(x, nn.Mode()).anchors)
    boxes, classes, _ = objects()
    found = match_boxes(cg.box_iou(anchors[None], boxes), cg.Const(classes) > 0, 0.3, 0.7, best_of_each=True)
    whose, positive, negative = cg.compile(list(found))()
    targets = [{"boxes": torch.from_numpy(boxes[0])}, {"boxes": torch.zeros((0, 4))}]
    labels, _ = theirs.rpn.assign_targets_to_anchors([torch.from_numpy(anchors)] * 2, targets)
    for i in range(2):
        np.testing.assert_array_equal(positive[i], labels[i] == 1)
        np.testing.assert_array_equal(negative[i], labels[i] == 0)
    indices = theirs.rpn.proposal_matcher(theirs.rpn.box_similarity(targets[0]["boxes"], torch.from_numpy(anchors)))
    np.testing.assert_array_equal(whose[0][positive[0]], indices[positive[0]])


def our_losses(model, image, given, dtype="float32"):
    """The five losses, gradients by path, and what was sampled, all as arrays; computed in `dtype`."""
    weights = {x: variable(x, dtype) for x in model.variables().values()}
    paths = {path: weights[x] for path, x in model.parameters().items()}
    model = map_parameters(model, weights.__getitem__)
    arrays = [x.astype(dtype) if x.dtype == "float32" else x for x in (image, window(2), *given)]
    mode, inputs = nn.Mode(training=True), [cg.Var(x.shape, x.dtype) for x in arrays]
    truth, config = losses.Truth(*inputs[2:]), model.config
    raw = model.raw(inputs[0], mode)
    first, second = cg.split_key(cg.Const(cg.random_key(3)))
    anchor = losses.anchor_choice(config, np.concatenate(raw.anchors), truth, first)
    candidates, there = losses.candidates_of(config, raw, inputs[1], truth)
    box = losses.box_choice(config, candidates, there, truth, second)
    found = [*losses.anchor_losses(config, raw, truth, anchor)]
    found += losses.box_losses(model, raw, candidates, truth, box, mode)
    gradients = cg.gradient(sum(found[1:], found[0]), list(paths.values()))
    values = cg.compile([*found, *anchor, *box, there, *gradients], inputs)(*arrays)
    sample = {"anchor": losses.BoxSample(*values[5:9]), "box": losses.BoxSample(*values[9:13]), "there": values[13]}
    return values[:5], dict(zip(paths, values[14:])), sample


def variable(x, dtype):
    """A Var with the value of a Parameter, in `dtype`."""
    return cg.Var(x.shape, dtype).assign(x.value.astype(dtype))


class Given:
    """A sampler of torchvision's that chooses what it is told. Changes: the next picture."""

    def __init__(self, choice, there=None):
        self.choice, self.there = choice, there

    def __call__(self, labels):
        masks = []
        for i, label in enumerate(labels):
            there = np.ones(len(label), bool) if self.there is None else self.there[i]
            number = np.cumsum(there) - 1  # torchvision's list has no gap between proposals and objects
            for wanted in (self.choice.hit[i], self.choice.there[i] & ~self.choice.hit[i]):
                mask = torch.zeros(len(label), dtype=torch.uint8)
                mask[number[self.choice.places[i][wanted]]] = 1
                masks.append(mask)
        return masks[::2], masks[1::2]


def their_losses(model, image, given, sample, monkeypatch, dtype="float32"):
    """The same of torchvision, whose masks are sampled twice a cell here too."""
    model = copy.deepcopy(model).to(getattr(torch, dtype))
    image, *given = (x.astype(dtype) if x.dtype == "float32" else x for x in (image, *given))
    boxes, classes, owner = given
    heads = oracle.load().models.detection.roi_heads
    monkeypatch.setattr(heads, "project_masks_on_boxes", twice_a_cell)
    monkeypatch.setattr(model.rpn, "fg_bg_sampler", Given(sample["anchor"]))
    monkeypatch.setattr(model.roi_heads, "fg_bg_sampler", Given(sample["box"], sample["there"]))
    for part in (model.rpn, model.roi_heads):
        part.train()
    targets = [
        {
            "boxes": torch.from_numpy(boxes[i][kinds > 0]),
            "labels": torch.from_numpy(kinds[kinds > 0]),
            "masks": torch.from_numpy(np.stack([owner[i] == j + 1 for j in range(3)])[kinds > 0].astype("uint8")),
        }
        for i, kinds in enumerate(classes)
    ]
    features = model.backbone(torch.from_numpy(image))
    images = oracle.load().models.detection.image_list.ImageList(torch.from_numpy(image), [SIZE] * 2)
    found, of_anchors = model.rpn(images, features, targets)
    _, of_boxes = model.roi_heads(features, found, images.image_sizes, targets)
    parts = of_anchors | of_boxes
    sum(parts.values()).backward()
    arrays = arrays_of(model) | {name: x.grad.numpy() for name, x in model.named_parameters() if x.grad is not None}
    names = "loss_objectness loss_rpn_box_reg loss_classifier loss_box_reg loss_mask".split()
    return [parts[name].detach().numpy() for name in names], arrays


def twice_a_cell(masks, boxes, whose, size):
    rois = torch.cat([whose[:, None].to(boxes), boxes], 1)
    return oracle.load().ops.roi_align(masks[:, None].to(rois), rois, (size, size), 1.0, 2)[:, 0]


def slopes_of(arrays, model):
    """Gradients by our paths: an array by torchvision's name each."""
    return {path: x for path, x in torchvision_arrays(arrays, model).items() if path in model.parameters()}


def distances(found, wanted):
    """By path, how far gradients are from those that are wanted, over their norm."""
    return {path: np.linalg.norm(found[path] - x) / np.linalg.norm(x) for path, x in wanted.items()}


@pytest.mark.slow
def test_losses_and_gradients_at_the_same_places(theirs, ours, image, monkeypatch):
    found, gradients, sample = our_losses(ours, image, objects(), "float64")
    want, arrays = their_losses(theirs, image, objects(), sample, monkeypatch, "float64")
    assert sample["box"].hit.sum() >= 3 and sample["anchor"].hit.sum() > 3
    for one, other in zip(found, want):
        assert_agrees(one, other, "float32 formulas")  # torchvision adds up some in single precision
    off = distances(gradients, slopes_of(arrays, ours))
    assert max(off.values()) < 1e-6, {path: x for path, x in off.items() if x >= 1e-6}


@pytest.mark.slow
def test_gradients_in_single_precision_are_near_those_in_double(theirs, ours, image, monkeypatch):
    found, gradients, sample = our_losses(ours, image, objects())
    want, arrays = their_losses(theirs, image, objects(), sample, monkeypatch, "float64")
    for one, other in zip(found, want):
        assert_agrees(one, other)
    # an element near the corner of a relu may fall on either side of it, and what lies below follows
    off = distances(gradients, slopes_of(arrays, ours))
    assert np.median(list(off.values())) < 1e-4
    assert max(off.values()) < 1e-3, {path: x for path, x in off.items() if x >= 1e-3}


def test_masks_are_pasted_as_torchvision_does(theirs):
    rng = np.random.default_rng(4)
    low = rng.uniform(-12, 90, (40, 2)).astype("float32")
    boxes = np.concatenate([low, low + rng.uniform(0.2, 50, (40, 2)).astype("float32")], 1)
    boxes = np.clip(boxes, 0, np.array([100, 80, 100, 80], "float32"))  # as detections are: torchvision needs that
    boxes = boxes[((boxes[:, 2:] - boxes[:, :2]) > 0.1).all(1)]
    masks = rng.random((len(boxes), 28, 28)).astype("float32")
    heads = oracle.load().models.detection.roi_heads
    want = heads.paste_masks_in_image(torch.from_numpy(masks)[:, None], torch.from_numpy(boxes), (80, 100))[
        :, 0
    ].numpy()
    for box, mask, expected in zip(boxes, masks, want):
        pixels = Detection(tuple(map(float, box)), 1.0, 1, mask, (80, 100)).pixels()
        near = np.abs(expected - 0.5) < 1e-5  # where rounding decides
        np.testing.assert_array_equal(pixels[~near], (expected >= 0.5)[~near])
