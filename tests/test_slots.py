"""Slots: a hook imports its function at the first call, and every place that is filled has a function of that name."""

import sys
from importlib import import_module

import numpy as np
import pytest

import cgraph
from cgraph import slots
from cgraph.slots import Hook, fill


def test_a_hook_imports_at_its_first_call_and_passes_everything_on(tmp_path, monkeypatch):
    (tmp_path / "upper_layer.py").write_text(
        "calls = []\ndef join(*args, **named):\n    calls.append(args)\n    return args, named\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    first, second = Hook(), Hook()
    fill({first: "upper_layer:join", second: "upper_layer:missing"})
    assert "upper_layer" not in sys.modules
    assert first(1, 2, sep="x") == ((1, 2), {"sep": "x"})
    module = sys.modules.pop("upper_layer")
    assert first() == ((), {}) and module.calls == [(1, 2), ()]  # the same function, without another import
    assert "upper_layer" not in sys.modules
    with pytest.raises(AttributeError, match="missing"):
        second()
    sys.modules.pop("upper_layer")


def test_a_place_that_is_filled_again_before_the_first_call_holds():
    hook = Hook()
    fill({hook: "math:sqrt"})
    fill({hook: "math:floor"})
    assert hook(2.5) == 2


def test_every_hook_is_filled_with_a_function_that_exists():
    hooks = {name: x for name, x in vars(slots).items() if isinstance(x, Hook)}
    assert len(hooks) == 18 and len(set(map(id, hooks.values()))) == 18
    for name, hook in hooks.items():
        module, _, function = hook._place.partition(":")
        assert module.startswith("cgraph."), name
        assert callable(getattr(import_module(module), function)), name


def test_hooks_do_what_their_names_say(tmp_path):
    x = cgraph.Var((2,), name="weights")
    assert "weights" in slots.node_html(x)
    path = tmp_path / "arrays.safetensors"
    slots.write_safetensors(path, {"a": np.arange(3, dtype="float32")})
    assert slots.read_safetensors(path)["a"].tolist() == [0, 1, 2]
    assert "sum" in slots.numpy_names() and slots.numpy_attribute(x, "itemsize") == 4
