"""A public function that gets an argument of a wrong kind refuses it by a typed error or TypeError.

Errors of Python's own objects inside (AttributeError, KeyError, IndexError …) name something that the caller never
wrote, so they help nobody.
"""

import inspect
import os
from contextlib import suppress

import numpy as np
import pytest

import cgraph as cg
import nn


class Anything:
    """An object of no kind that a function takes."""


VALUES = {
    "text": "qqq", "integer": 3, "None": None, "object": Anything(), "list": [], "dict": {}, "float": -1.5,
    "array": np.zeros((2, 3), np.float32), "node": cg.Var((2, 3)),
}  # fmt: skip
PLAIN = (AttributeError, LookupError, NameError, AssertionError, RecursionError, ZeroDivisionError)
MADE_ELSEWHERE = {
    "Function": "cg.compile", "Runner": "cg.compile", "SavedFunction": "cg.load",
    "QuantisedPredictor": "nn.quantise",
}  # fmt: skip
"""Classes for annotations and isinstance, and what makes their instances."""
OWNERS = {"cg": cg, "nn": nn, "nn.losses": nn.losses, "nn.metrics": nn.metrics, "nn.optim": nn.optim}


def public():
    """Yield the name of each public function and class that takes arguments, itself, and how many it requires."""
    for owner, module in OWNERS.items():
        for name in dir(module):
            function = getattr(module, name)
            if name.startswith("_") or not callable(function) or name in MADE_ELSEWHERE:
                continue
            try:
                parameters = inspect.signature(function).parameters.values()
            except ValueError:
                continue
            positional = [x for x in parameters if x.kind in (x.POSITIONAL_ONLY, x.POSITIONAL_OR_KEYWORD)]
            required = sum(x.default is x.empty for x in positional)
            if required:
                yield f"{owner}.{name}", function, required


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", VALUES)
def test_a_wrong_kind_is_refused_by_an_error_for_callers(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some of them write files
    value, handle = VALUES[kind], os.open(os.devnull, os.O_RDONLY)
    if kind == "integer":
        value = handle  # open(3) takes a number for an open file, and closes it
    wrong, count = [], 0
    for name, function, required in public():
        count += 1
        try:
            function(*[value] * required)
        except PLAIN as error:
            if not isinstance(error, cg.CgraphError):
                wrong.append(f"{name}: {type(error).__name__}: {error}")
        except (Exception, SystemExit):  # noqa: S110  typed errors, TypeError, ValueError and OSError are for callers
            pass
        try:
            os.fstat(handle)
        except OSError:
            pytest.fail(f"{name} closed a file of the caller's")
    os.close(handle)
    assert count > 250
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("call", [nn.save_weights, nn.load_weights])
def test_a_path_and_a_model_in_the_wrong_order_are_named(call):
    model = nn.initialise(nn.Linear(2, 3), 0)
    with pytest.raises(cg.InputError, match=r"model is 'weights.safetensors'\. Pass a Layer"):
        call(model, "weights.safetensors")


SIZES = {
    "inputs": 4, "outputs": 6, "window": 3, "units": 5, "features": 4, "hidden": 8, "channels": 4, "heads": 2,
    "symbols": 9,
    "rate": 0.5, "function": "relu", "shape": (4,), "before": 1, "behind": 1, "index": 0, "deviation": 0.1, "groups": 2,
    "body": nn.Linear(4, 4), "parts": (nn.Linear(4, 4), nn.Linear(4, 2)), "forward": nn.GRU(4, 3),
    "backward": nn.GRU(4, 3),
}  # fmt: skip
BY_USERS = {"Layer", "Lambda", "LambdaArray"}  # call a function of the user


def layers():
    """Return the classes of layers that `nn` has."""
    members = (getattr(nn, name) for name in dir(nn))
    return [x for x in members if inspect.isclass(x) and issubclass(x, nn.Layer) and x.__name__ not in BY_USERS]


@pytest.mark.parametrize("layer", layers(), ids=lambda x: x.__name__)
def test_a_layer_refuses_axes_and_dtypes_that_it_does_not_take(layer):
    required = [x.name for x in inspect.signature(layer).parameters.values()
                if x.default is x.empty and x.kind is x.POSITIONAL_OR_KEYWORD]  # fmt: skip
    model = nn.initialise(layer(**{name: SIZES[name] for name in required}), 0)
    for rank in range(6):
        for dtype in ("float32", "int32", "bool"):
            with suppress(cg.CgraphError):  # any other error fails the test
                model(cg.Var((4,) * rank, dtype))


@pytest.mark.parametrize("layer", layers(), ids=lambda x: x.__name__)
def test_a_switch_of_a_layer_is_true_or_false(layer):
    """nn.LSTM(8, 16, 2) has two layers in PyTorch."""
    fields = inspect.signature(layer).parameters.values()
    required = {x.name: SIZES[x.name] for x in fields if x.default is x.empty and x.kind is x.POSITIONAL_OR_KEYWORD}
    for switch in (x.name for x in fields if isinstance(x.default, bool)):
        with pytest.raises(cg.InputError, match=rf"{layer.__name__}\.{switch} is 2\. Pass True or False"):
            layer(**required, **{switch: 2})
