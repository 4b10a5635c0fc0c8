"""A backend for `onnx.backend.test`: `prepare`, `run`, `supports_device`.

A backend gets a model first and its inputs later, but in many node tests an input determines a shape. So the graph is
built in the first run, with such inputs as constants, and rebuilt when one of them changes.
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
    """A model that is ready to run. Changes: it caches the last graph.

    Fields
        source: the serialised model
        options: for `Model.compile`
        outputs: names of the results, if fewer than those of the model
    """

    source: Any
    options: dict[str, Any] = field(default_factory=dict)
    model: Model | None = None
    function: Function | None = None

    def run(self, inputs: Any, **_: Any) -> tuple[np.ndarray, ...]:
        """Run with inputs in the model's order, or by name."""
        values = self._named(inputs)
        if self.model is None or not self._fits(values):
            self.model = build_model(self.source, shapes_of(values), values, {})
            self.function = self.model.compile(**self.options)
        assert self.function is not None
        results = self.function.run(None, {x.name: values[x.name] for x in self.model.inputs})
        numbers = {v.name: v.type.tensor_type.elem_type for v in self.outputs}
        named = zip(self.model.names, results, strict=True)
        return self._declared({name: of_package(x, numbers.get(name, 0)) for name, x in named})

    def _declared(self, results: dict[str, Any]) -> tuple[Any, ...]:
        """Return a result for each output of the file: an array, or for a sequence the list of its items."""
        return tuple(results[v.name] if v.name in results else items_of(v.name, results) for v in self.outputs)

    @property
    def outputs(self) -> Sequence[Any]:
        """Return the descriptions of the outputs in the file."""
        return self.source.proto.graph.output

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
            raise FormatError(f"{len(listed)} inputs are given. Pass {len(names)}: {', '.join(names)}")
        return dict(zip(names, map(from_package, listed)))

    def _fits(self, values: dict[str, Any]) -> bool:
        """Return True if the graph is valid for these inputs."""
        assert self.model is not None
        return all(values[x.name].shape == x.shape for x in self.model.inputs) and all(
            np.array_equal(values[name], old) for name, old in self.model.fixed.items()
        )


def items_of(name: str, results: dict[str, Any]) -> list[Any]:
    """Return the items of a sequence, whose names are its own with their indices."""
    items: list[Any] = []
    while f"{name}.{len(items)}" in results:
        items.append(results[f"{name}.{len(items)}"])
    return items


def shapes_of(values: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of inputs that are arrays."""
    return {name: x.shape for name, x in values.items() if isinstance(x, np.ndarray)}


def supports_device(device: str) -> bool:
    """Return True for the CPU."""
    return device.split(":")[0] == "CPU"


def is_compatible(model: Any, device: str = "CPU", **_: Any) -> bool:
    """Return True: an unsupported model is refused when it is prepared or run."""
    return supports_device(device)


def prepare(model: Any, device: str = "CPU", **options: Any) -> Prepared:
    """Prepare a model; options as for `cgraph.compile`. FormatError for any device but the CPU."""
    if not supports_device(device):
        raise FormatError(f"device {device!r} is not supported. Use CPU")
    return Prepared(open_source(model.SerializeToString()), options)


def run_model(model: Any, inputs: Any, device: str = "CPU", **options: Any) -> tuple[np.ndarray, ...]:
    """Run a model once."""
    return prepare(model, device, **options).run(inputs)


run = run_model
