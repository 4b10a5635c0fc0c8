"""This library as a backend of `onnx.backend.test`: `prepare`, `run`, `supports_device`.

A backend is given a model first and its inputs later, and many operators of the node tests take their shape from an
input. So a graph is built at the first run; inputs whose value decides a shape are part of it, and when such a value
changes it is built anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.model import Model
from cgraph.formats.onnx.reader import build_model
from cgraph.formats.onnx.source import open_source
from cgraph.formats.onnx.tensors import from_package, of_package
from cgraph.function import Function


@dataclass(eq=False)
class Prepared:
    """A model that is ready to run. Changes: it keeps the last graph that it built.

    Fields
        source: the serialised model
        options: for `Model.compile`
        outputs: the results' names, when they are fewer than the model's
    """

    source: Any
    options: dict[str, Any] = field(default_factory=dict)
    model: Model | None = None
    function: Function | None = None

    def run(self, inputs: Any, **_: Any) -> tuple[np.ndarray, ...]:
        """The outputs for inputs in the model's order, or by name."""
        values = self._named(inputs)
        if self.model is None or not self._fits(values):
            self.model = build_model(self.source, shapes_of(values), values, {})
            self.function = self.model.compile(**self.options)
        assert self.function is not None
        return tuple(map(of_package, self.function(*(values[x.name] for x in self.model.inputs))))

    def _named(self, inputs: Any) -> dict[str, Any]:
        if isinstance(inputs, dict):
            return {name: from_package(x) for name, x in inputs.items()}
        listed = inputs if isinstance(inputs, Sequence) else [inputs]
        graph = self.source.proto.graph
        stored = {t.name for t in graph.initializer}
        names = [v.name for v in graph.input]
        if len(listed) < len(names):
            names = [name for name in names if name not in stored]
        if len(listed) > len(names):
            raise FormatError(f"{len(listed)} inputs are given, the model takes {len(names)}")
        return dict(zip(names, map(from_package, listed)))

    def _fits(self, values: dict[str, Any]) -> bool:
        """The graph is right for these inputs."""
        assert self.model is not None
        return all(values[x.name].shape == x.shape for x in self.model.inputs) and all(
            np.array_equal(values[name], old) for name, old in self.model.fixed.items()
        )


def shapes_of(values: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """The shapes of inputs that are arrays."""
    return {name: x.shape for name, x in values.items() if isinstance(x, np.ndarray)}


def supports_device(device: str) -> bool:
    """The CPU is what there is."""
    return device.split(":")[0] == "CPU"


def is_compatible(model: Any, device: str = "CPU", **_: Any) -> bool:
    """Every model may be tried; an unsupported one is refused when it is prepared or run."""
    return supports_device(device)


def prepare(model: Any, device: str = "CPU", **options: Any) -> Prepared:
    """A model that is ready to run; options as for `cgraph.compile`. FormatError for another device than the CPU."""
    if not supports_device(device):
        raise FormatError(f"device {device!r} is not supported; there is CPU")
    return Prepared(open_source(model.SerializeToString()), options)


def run_model(model: Any, inputs: Any, device: str = "CPU", **options: Any) -> tuple[np.ndarray, ...]:
    """The outputs of a model for given inputs."""
    return prepare(model, device, **options).run(inputs)


run = run_model
