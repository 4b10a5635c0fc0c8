"""Published PyTorch files by path: names of ResNets and BlazeFaces, and torchvision's order of arrays."""

import numpy as np
import pytest

import nn
from cgraph import FormatError
from nn.models.blazeface import BlazeFace
from nn.models.resnet import ResNet, cifar
from nn.models.torch_names import blazeface_arrays, resnet_arrays, torchvision_arrays


def arrays_of(model):
    """The model's arrays as torch has them, in its order, with what only training reads."""
    found = {f"{i}.weight": x.value.T if x.ndim == 2 else x.value for i, x in enumerate(model.variables().values())}
    return found | {"0.num_batches_tracked": np.zeros((), np.int64)}


def test_a_file_of_another_network_is_refused():
    model = nn.models.squeezenet1_1("zeros", classes=3)
    arrays = arrays_of(model)
    assert torchvision_arrays(arrays, model).keys() == model.variables().keys()
    with pytest.raises(FormatError, match="the file has 51 arrays, the network 52"):
        torchvision_arrays({name: x for name, x in arrays.items() if name != "3.weight"}, model)
    arrays["0.weight"] = np.zeros((64, 3, 5, 5), "float32")
    with pytest.raises(FormatError, match=r"0.weight has shape \[64, 3, 5, 5\]"):
        torchvision_arrays(arrays, model)


class Names(dict):
    """A file in which every name is an array; each says its own name. Changes: which were read."""

    def __missing__(self, name):
        self[name] = np.array([[name]])
        return self[name]


def names_of(by_path):
    """The file's name of each path; an array of two axes may be transposed."""
    return {path: str(x.ravel()[0]) for path, x in by_path.items()}


def test_blocks_of_a_resnet_have_torchvisions_names():
    model = nn.models.resnet50(None)
    by_path = names_of(resnet_arrays(Names(), model))
    assert by_path.keys() == model.variables().keys()
    assert len(set(by_path.values())) == len(by_path)
    expected = {
        "stem.conv.weight": "conv1.weight",
        "stem.norm.scale": "bn1.weight",
        "stem.norm.shift": "bn1.bias",
        "stem.norm.mean": "bn1.running_mean",
        "stem.norm.variance": "bn1.running_var",
        "groups.0.0.third.conv.weight": "layer1.0.conv3.weight",
        "groups.3.2.second.norm.mean": "layer4.2.bn2.running_mean",
        "groups.1.0.shortcut.conv.weight": "layer2.0.downsample.0.weight",
        "groups.1.0.shortcut.norm.shift": "layer2.0.downsample.1.bias",
        "classifier.weight": "fc.weight",
        "classifier.bias": "fc.bias",
    }
    assert {path: by_path[path] for path in expected} == expected


def test_a_file_for_cifar_has_a_prefix_and_a_linear_layer():
    model = cifar(1)
    prefix = "state_dict.module."
    arrays = Names({f"{prefix}linear.weight": np.array([[f"{prefix}linear.weight"]])})
    by_path = names_of(resnet_arrays(arrays, model, prefix))
    assert by_path.keys() == model.variables().keys()
    assert all(name.startswith(prefix) for name in by_path.values())
    assert by_path["classifier.weight"] == f"{prefix}linear.weight"
    assert by_path["classifier.bias"] == f"{prefix}linear.bias"
    assert by_path["groups.2.0.second.conv.weight"] == f"{prefix}layer3.0.conv2.weight"


def test_the_classifiers_weight_is_transposed():
    arrays = Names({"fc.weight": np.arange(6).reshape(2, 3)})
    by_path = resnet_arrays(arrays, ResNet((1,), classes=2))
    np.testing.assert_array_equal(by_path["classifier.weight"], arrays["fc.weight"].T)


class Head(nn.Layer):
    def __init__(self):
        self.hold(conv=nn.Conv2d(2, 3, 1), norm=nn.BatchNorm(3), last=nn.Linear(3, 4))


def test_arrays_follow_torchvisions_order_whatever_their_names():
    """Matrices are transposed, or filters of one pixel; what only training reads is skipped."""
    sizes = [(3, 2), (3,), (3,), (3,), (3,), (3,), (4, 3), (4,)]
    arrays = {f"x{i}": np.random.default_rng(i).normal(size=size) for i, size in enumerate(sizes)}
    extra = {"norm.num_batches_tracked": np.zeros(()), "AuxLogits.conv.weight": np.zeros((1, 1))}
    by_path = torchvision_arrays(extra | arrays, Head())
    assert list(by_path) == list(Head().variables())
    np.testing.assert_array_equal(by_path["conv.weight"], arrays["x0"][:, :, None, None])
    np.testing.assert_array_equal(by_path["norm.variance"], arrays["x5"])
    np.testing.assert_array_equal(by_path["last.weight"], arrays["x6"].T)


def test_a_shape_that_does_not_fit_is_named_with_its_place():
    sizes = [(3, 2), (3,), (3,), (3,), (3,), (3,), (4, 5), (4,)]
    arrays = {f"x{i}": np.zeros(size) for i, size in enumerate(sizes)}
    with pytest.raises(FormatError) as error:
        torchvision_arrays(arrays, Head())
    assert str(error.value) == (
        "x6 has shape [5, 4] in the order of last.weight, which has [3, 4]. Use the file of the same network."
    )


@pytest.mark.parametrize("back", [False, True])
def test_blocks_of_blazeface_have_hollances_names(back):
    model = BlazeFace(back)
    by_path = names_of(blazeface_arrays(Names(), model))
    assert by_path.keys() == model.variables().keys()
    body, second = ("backbone", "final") if back else ("backbone1", "backbone2.0")
    expected = {
        "stem.weight": f"{body}.0.weight",
        "first.0.depthwise.weight": f"{body}.2.convs.0.weight",
        "first.0.pointwise.bias": f"{body}.2.convs.1.bias",
        "first.10.pointwise.weight": f"{body}.12.convs.1.weight",
        "second.0.depthwise.weight": f"{second}.convs.0.weight",
        "scores_8.weight": "classifier_8.weight",
        "scores_16.bias": "classifier_16.bias",
        "boxes_8.weight": "regressor_8.weight",
        "boxes_16.bias": "regressor_16.bias",
    }
    assert {path: by_path[path] for path in expected} == expected
    assert len(set(by_path.values())) == len(by_path)
