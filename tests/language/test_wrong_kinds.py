"""A public function that gets an argument of a wrong kind refuses it by a typed error or TypeError.

Errors of Python's own objects inside (AttributeError, KeyError, IndexError …) name something that the caller never
wrote, so they help nobody.
"""

import inspect
import os

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
