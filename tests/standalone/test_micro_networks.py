"""A network that MCUNet publishes is exported with the bits of its twin, in bands down to a budget."""

from pathlib import Path

import pytest

import cgraph as cg
from benchmarks.micro_networks import micro_network
from cgraph.formats import tflite
from tests.support.exported import run_export

pytestmark = pytest.mark.slow
BUDGET = 32_000  # of 99,904 bytes; the picture and a copy of it would be 38,400


def test_a_published_network_has_the_bits_of_its_twin_within_a_budget(tmp_path: Path):
    model = tflite.load(micro_network("mcunet_vww1"))
    done = cg.export(
        model.outputs, model.inputs, tmp_path / "m", target="cortex-m7", winograd=False, budget=BUDGET, name="m"
    )
    assert done.arena_nbytes <= BUDGET
    assert run_export(tmp_path / "m").outputs == (tmp_path / "m/check/out.bin").read_bytes()
