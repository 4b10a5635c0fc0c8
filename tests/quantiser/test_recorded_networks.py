"""What the quantiser makes of drawn networks is what was recorded: layers, values of bytes, shared scales, scales.

A change that is meant: write the record anew, and read its difference (`recorded_networks.py` says how).
"""

import pytest

from tests.quantiser.recorded_networks import COUNT, RECORD, line

LINES = RECORD.read_text().splitlines()


@pytest.mark.parametrize("number", range(COUNT))
def test_a_drawn_network_has_the_layers_values_and_scales_that_were_recorded(number):
    assert line(number) == LINES[number]


def test_nothing_else_is_recorded():
    assert len(LINES) == COUNT
