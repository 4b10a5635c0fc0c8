"""The short form of `python -m benchmarks.hosts random`."""

import pytest

pytest.importorskip("distributed", reason="distributed is not installed")

from tests.dist.hosts.random_faults import train_for
from tests.dist.hosts.test_links import bits

pytestmark = pytest.mark.slow


def test_trainings_under_random_faults_have_the_same_bits(cluster):
    cluster.outcome(epochs=1)  # the client's process has started
    outcome = train_for(cluster, 10.0, 5, 8, bits(32)[1])
    assert outcome.trainings and not outcome.others and outcome.faults
