"""ONNX files that make their reader do far more than they are long: refused, or read within the limits."""

import pytest

from benchmarks.fuzz.child import Child
from benchmarks.fuzz.collisions import pairs_of_one_hash
from benchmarks.fuzz.onnx_attacks import ATTACKS, model, node, one_of_each_kind, repeated_fields


@pytest.fixture(scope="module")
def child(tmp_path_factory):
    """A process that has read a file already: its imports are no file's cost."""
    path = tmp_path_factory.mktemp("onnx") / "net.onnx"
    path.write_bytes(model([node("Relu", ["x"], ["y"])]))
    with Child("onnx") as process:
        process.outcome(path)
        yield process


@pytest.mark.parametrize("name", ATTACKS)
def test_what_a_file_repeats_costs_in_proportion(name, child, tmp_path):
    make, number = ATTACKS[name]
    path = tmp_path / "net.onnx"
    path.write_bytes(make(number))
    outcome = child.outcome(path)
    assert not outcome.is_trouble, outcome


REPEATED = dict(repeated_fields(3 << 20))


@pytest.mark.slow
@pytest.mark.parametrize("name", one_of_each_kind())
def test_very_many_of_any_field_cost_in_proportion(name, child, tmp_path):
    path = tmp_path / "net.onnx"
    path.write_bytes(REPEATED[name]())
    outcome = child.outcome(path)
    assert not outcome.is_trouble, outcome


def test_pairs_of_one_hash_have_one_hash():
    pairs = pairs_of_one_hash(100)
    assert len(set(pairs)) == 100 and len({hash(pair) for pair in pairs}) == 1
