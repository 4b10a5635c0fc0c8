"""ONNX's own tests whose graphs depend on values of inputs, with those values passed only at run time.

Numbers get a maximum where one is needed: their own largest value, or MOST for intermediate ones. Values needed to
build a graph (axes, thresholds of boxes) are passed as constants, one by one, and counted.

python -m benchmarks.onnx_open
"""

from collections import Counter
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.model import Model
from cgraph.formats.onnx import backend
from cgraph.formats.onnx.reader import build_model
from cgraph.formats.onnx.tensors import of_package
from cgraph.formats.unspecified import UnknownError
from tests.support.onnx_cases import KINDS, Case, cases

MOST = 20
TRIES = 20


class Open(backend.Prepared):
    """A model built without the values of its inputs. Changes: the constants and maximums it was built with."""

    def run(self, inputs: Any, **_: Any) -> tuple[np.ndarray, ...]:
        values = self._named(inputs)
        self.model = self.built(values)
        return tuple(map(of_package, self.model.compile()(*(values[x.name] for x in self.model.inputs))))

    def built(self, values: dict[str, Any]) -> Model:
        """Return the model, with only the constants that it needs."""
        constants = {name: x for name, x in values.items() if not isinstance(x, np.ndarray)}
        maximum: dict[str, int] = {}
        for _ in range(TRIES):
            try:
                return build_model(self.source, backend.shapes_of(values), constants, maximum)
            except FormatError as error:
                asked = error if isinstance(error, UnknownError) else error.__cause__
                if not isinstance(asked, UnknownError):
                    raise
                wanted = [name for name in asked.maximum if name not in maximum]
                if wanted:
                    known = values.get(wanted[0])
                    maximum[wanted[0]] = MOST if known is None else max(int(np.ceil(known.max())), 0)
                else:
                    constants |= {name: values[name] for name in asked.constants}
        raise FormatError(f"asked more than {TRIES} times")


def depends_on_values(case: Case, model: Any) -> bool:
    """Return True if the test passes and the backend builds its graph for values."""
    prepared = backend.prepare(model)
    try:
        case.check(prepared, model)
    except Exception:  # any exception is this case's failure
        return False
    return bool(prepared.model and prepared.model.fixed)


def main() -> None:
    counts: Counter[str] = Counter()
    for case in (case for kind in KINDS for case in cases(kind)):
        model = case.model()
        if not depends_on_values(case, model):
            continue
        prepared = Open(backend.open_source(model.SerializeToString()))
        try:
            case.check(prepared, model)
        except Exception as error:  # any exception is this case's failure
            counts["fail"] += 1
            print(f"{case.name}: {type(error).__name__}: {str(error)[:200]}")
            continue
        assert prepared.model is not None
        counts["with some values" if prepared.model.fixed else "without any value"] += 1
        counts["open"] += prepared.model.is_open
    print(dict(counts))


if __name__ == "__main__":
    main()
