"""Names of other libraries in `nn`: each error names something that exists."""

import re

import pytest

import nn
from nn.missing import ELSEWHERE, MEMBERS

TORCH = ("ReLU", "GELU", "LeakyReLU", "BatchNorm2d", "ConvTranspose2d", "Identity", "Module", "Softmax", "SiLU")
KERAS = ("Dense", "MaxPooling2D", "AveragePooling2D", "Conv2D", "BatchNormalization", "LayerNormalization")


@pytest.mark.parametrize("name", [*TORCH, *KERAS, *ELSEWHERE, *MEMBERS, "Linaer", "Plateau", "accuracy", "resnet18"])
def test_the_error_names_something_that_exists(name):
    with pytest.raises(AttributeError, match=f"nn has no attribute '{name}'") as error:
        getattr(nn, name)
    advice = str(error.value).split(";")[1]
    paths = re.findall(r"nn\.((?:(?:losses|optim|metrics|models)\.)?\w+)", advice)
    assert paths or "cgraph" in advice
    for path in paths:
        owner, _, member = path.rpartition(".")
        assert hasattr(getattr(nn, owner) if owner else nn, member)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("ReLU", 'use nn.Activation("relu")'),
        ("BatchNorm1d", "use nn.BatchNorm"),
        ("AveragePooling2D", "use nn.AvgPool2d"),
        ("Adam", "use nn.optim.Adam"),
        ("Leaky_ReLU", 'use nn.Activation("leaky_relu")'),
        ("max_pooling_2d", "use nn.MaxPool2d"),
        ("data_loader", "use nn.Loader"),
        ("zzz", "see dir(nn)"),
    ],
)
def test_the_advice_fits(name, advice):
    with pytest.raises(AttributeError) as error:
        getattr(nn, name)
    assert str(error.value) == f"nn has no attribute {name!r}; {advice}"


@pytest.mark.parametrize(
    ("module", "name", "advice"),
    [
        ("optim", "SGD", "use nn.optim.GradientDescent"),
        ("optim", "StepLR", "use nn.optim.Steps"),
        ("optim", "adam", "the nearest is nn.optim.Adam"),
        ("losses", "mean_squared_error", "use nn.losses.quadratic"),
        ("losses", "CrossEntropyLoss", "use nn.losses.cross_entropy"),
        ("losses", "smooth_l1_loss", "use nn.losses.huber"),
        ("losses", "BINARY_CROSS_ENTROPY", "use nn.losses.binary_cross_entropy"),
        ("losses", "BINARY_CROS_ENTROPI", "the nearest is nn.losses.binary_cross_entropy"),
        ("metrics", "Accuracy", "the nearest is nn.metrics.accuracy"),
        ("metrics", "zzz", r"see dir\(nn.metrics\)"),
    ],
)
def test_modules_of_members_advise_too(module, name, advice):
    with pytest.raises(AttributeError, match=f"nn.{module} has no attribute '{name}'; {advice}$"):
        getattr(getattr(nn, module), name)
    assert not hasattr(getattr(nn, module), "__wrapped__")


def test_names_that_python_looks_up_are_simply_missing():
    assert not hasattr(nn, "__wrapped__") and not hasattr(nn, "__path_of_nothing__")


@pytest.mark.parametrize("name", [name for name in (*ELSEWHERE, *MEMBERS) if re.search(r"\dd$", name)])
def test_layers_of_so_many_axes_are_those_of_as_many(name):
    with pytest.raises(AttributeError) as error:
        getattr(nn, name)
    axes = re.findall(r"\dd\b", str(error.value).split(";")[1].lower())
    assert axes == [name[-2:]] or axes == []


LOSSES = {
    "quadratic": ("mse", "MSELoss", "MeanSquaredError"), "l1": ("mae", "L1Loss"),
    "huber": ("HuberLoss", "SmoothL1Loss"),
    "cross_entropy": ("CrossEntropyLoss", "CategoricalCrossentropy", "SparseCategoricalCrossentropy"),
    "binary_cross_entropy": ("bce", "BCEWithLogitsLoss", "BinaryCrossentropy"),
}  # fmt: skip
RATES = {
    "Cosine": ("CosineAnnealingLR", "CosineDecay"), "ExpDecay": ("ExponentialLR", "ExponentialDecay"),
    "Steps": ("StepLR", "MultiStepLR"), "Plateau": ("ReduceLROnPlateau",), "ExponentialAverage": ("ema",),
    "GradientDescent": ("SGD",),
}  # fmt: skip


@pytest.mark.parametrize(("module", "table"), [("losses", LOSSES), ("optim", RATES)], ids=["losses", "optim"])
def test_names_of_other_libraries_are_those_of_the_same_formula(module, table):
    for ours, theirs in table.items():
        for name in theirs:
            for owner in (nn, getattr(nn, module)):
                with pytest.raises(AttributeError) as error:
                    getattr(owner, name)
                assert str(error.value).endswith(f"; use nn.{module}.{ours}")
