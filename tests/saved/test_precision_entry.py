"""The precision of a saved function: written with it, and checked when it is read."""

import pickle

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.planning.mixed_precision import LayerPrecision, MixedPrecision
from cgraph.saved.precision_entry import precision_of
from tests.support.emulated import PairsEngine

LAYERS = (LayerPrecision("a", "bf16", 10, "", 0.5), LayerPrecision("b", "float32", 0, "named in skip"))
WHOLE = MixedPrecision(LAYERS, 0.01, (("y", 0.25),), "why")


def test_an_entry_is_read_as_it_was_written():
    assert precision_of(WHOLE.facts()) == WHOLE
    assert precision_of(MixedPrecision(()).facts()) == MixedPrecision(())


@pytest.mark.parametrize(
    "entry",
    [
        None, [], {}, WHOLE.facts() | {"tolerance": "1"}, WHOLE.facts() | {"tolerance": True},
        WHOLE.facts() | {"errors": [["y"]]}, WHOLE.facts() | {"errors": [["y", "0"]]},
        WHOLE.facts() | {"errors": [[1, 0.5]]}, WHOLE.facts() | {"reason": None}, WHOLE.facts() | {"layers": {}},
        WHOLE.facts() | {"layers": [["a", "bf16", 10, ""]]}, WHOLE.facts() | {"layers": [["a", "int8", 1, "", 0.5]]},
        WHOLE.facts() | {"layers": [["a", "bf16", -1, "", 0.5]]}, WHOLE.facts() | {"layers": [["a", [], 1, "", 0.5]]},
        WHOLE.facts() | {"layers": [[1, "bf16", 1, "", 0.5]]}, WHOLE.facts() | {"layers": [["a", "bf16", 1, 2, 0.5]]},
        WHOLE.facts() | {"layers": [["a", "bf16", 1, "", "x"]]},
    ],
)  # fmt: skip
def test_any_other_entry_is_malformed(entry):
    with pytest.raises(FormatError, match="malformed"):
        precision_of(entry)


def test_saved_and_pickled_functions_have_their_precision(tmp_path):
    x, w = cg.Var((8, 32), name="x"), np.random.default_rng(0).standard_normal((32, 32)).astype("f4")
    sample = np.ones((8, 32), "f4")
    function = cg.compile(x @ w, [x], engine=PairsEngine(), precision=cg.Tolerance(1e-1, [sample]))
    function.save(tmp_path / "saved")
    loaded = cg.load(tmp_path / "saved")
    assert loaded.precision == pickle.loads(pickle.dumps(function)).precision == function.precision
    assert len(loaded.precision.bf16_layers) == 1
    loaded.save(tmp_path / "again")
    assert cg.load(tmp_path / "again").precision == function.precision
    cg.compile(x @ w, [x]).save(tmp_path / "floats")
    assert cg.load(tmp_path / "floats").precision is None
