"""The test cases of the onnx package: a model, inputs and expected outputs, and which of them are plain."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.tolerance import assert_within

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
PLAIN_DTYPES = {1, 2, 3, 6, 7, 9, 11}  # float32, uint8, int8, int32, int64, bool, float64
DOMAINS = {"", "ai.onnx"}


@dataclass(frozen=True)
class Case:
    """One test case of a suite. Outputs are compared within the case's own tolerances."""

    kind: str
    name: str
    folder: Path
    rtol: float
    atol: float

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.name}"

    def model(self) -> Any:
        import onnx

        return onnx.load(self.folder / "model.onnx")

    def data(self, model: Any) -> Iterator[tuple[list[Any], list[Any]]]:
        """Inputs and expected outputs of each data set."""
        for folder in sorted(self.folder.glob("test_data_set_*")):
            yield (
                [value(folder / f"input_{i}.pb", model.graph.input[i]) for i in range(count(folder, "input"))],
                [value(folder / f"output_{i}.pb", model.graph.output[i]) for i in range(count(folder, "output"))],
            )

    def check(self, prepared: Any, model: Any) -> None:
        """AssertionError when an output is not as expected."""
        for inputs, expected in self.data(model):
            outputs = prepared.run(inputs)
            assert len(outputs) == len(expected), f"{len(outputs)} outputs, {len(expected)} expected"
            for got, want in zip(outputs, expected):
                self.check_output(got, want)

    def check_output(self, got: Any, want: Any) -> None:
        """AssertionError when an output, an array or a list of arrays, is not as expected."""
        if isinstance(want, list):
            assert isinstance(got, list) and len(got) == len(want), f"{len(got)} items, {len(want)} expected"
            for item, wanted in zip(got, want):
                self.check_output(item, wanted)
            return
        assert got.dtype == want.dtype and got.shape == want.shape, f"{got.dtype}{got.shape}, not {want.shape}"
        if got.dtype.kind in "OSU":
            np.testing.assert_array_equal(got, want)
        else:
            assert_within(got, want, self.rtol, self.atol)


def count(folder: Path, what: str) -> int:
    return len(list(folder.glob(f"{what}_*.pb")))


def value(path: Path, declared: Any) -> Any:
    """An array, a list of arrays, or None."""
    import onnx
    from onnx import numpy_helper

    kind = declared.type.WhichOneof("value")
    proto, read = {
        "sequence_type": (onnx.SequenceProto(), numpy_helper.to_list),
        "optional_type": (onnx.OptionalProto(), numpy_helper.to_optional),
    }.get(kind, (onnx.TensorProto(), numpy_helper.to_array))
    proto.ParseFromString(path.read_bytes())
    return read(proto)


def cases(kind: str) -> list[Case]:
    """Every case of a suite."""
    from onnx.backend.test.loader import load_model_tests

    return [Case(kind, c.name, Path(c.model_dir), c.rtol, c.atol) for c in load_model_tests(kind=kind)]


def is_plain(case: Case, model: Any) -> bool:
    """A node test of ONNX's own operators on tensors of common dtypes, and no expanded function."""
    if case.kind != "node" or "expanded" in case.name:
        return False
    if any(x.domain not in DOMAINS for x in model.opset_import):
        return False
    types = [v.type for v in (*model.graph.input, *model.graph.output)]
    return all(t.WhichOneof("value") == "tensor_type" and t.tensor_type.elem_type in PLAIN_DTYPES for t in types)
