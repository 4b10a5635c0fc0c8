"""Trainings over links that fail, with the bits of one process."""

import os
import select
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("distributed", reason="distributed is not installed")

from tests.dist.clusters import alone, digest, loader, network
from tests.dist.hosts.conftest import CLIENT, SCHEDULER, WORKERS
from tests.dist.hosts.links import LinkQuality
from tests.dist.hosts.page import ROOT
from tests.support.patience import PATIENCE

FIRST, SECOND, THIRD = WORKERS
OTHERS = SCHEDULER, SECOND, THIRD, CLIENT
HASTY = {"silence": 0.2, "answer": 2.0}
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def whole_links(cluster):
    yield
    cluster.switch.mend()


def require_same_bits(outcome, epochs=3, width=16):
    model = network(width=width)
    losses = alone(model, loader(), 4 * epochs, 8)
    np.testing.assert_array_equal(np.float32(outcome["loss"]), np.float32(losses))
    assert outcome["digest"] == digest(model)


def test_hosts_have_the_bits_of_one_process(cluster):
    require_same_bits(cluster.outcome())


def test_a_link_that_is_down_for_a_second(cluster):
    down = [[FIRST, other] for other in OTHERS]
    outcome = cluster.outcome(host=FIRST, cut=[str(cluster.switch.path), down, 1.0])
    require_same_bits(outcome)
    assert cluster.switch.dropped


def test_two_workers_that_do_not_reach_one_another(cluster):
    """Both reach the client, which leaves one of them out."""
    outcome = cluster.outcome(host=FIRST, cut=[str(cluster.switch.path), [[FIRST, SECOND]]], limits=HASTY)
    require_same_bits(outcome)
    assert cluster.switch.dropped


def test_a_link_that_stays_down(cluster):
    """The cluster of the other cases keeps its worker, since its link is mended."""
    down = [[FIRST, other] for other in OTHERS]
    outcome = cluster.outcome(host=FIRST, cut=[str(cluster.switch.path), down], limits=HASTY)
    require_same_bits(outcome)
    assert cluster.switch.dropped


def test_a_slow_link_is_not_a_dead_one(cluster):
    """10 Mb/s, and more bytes than pass in the time for which a worker may be silent."""
    cluster.switch.links[FIRST] = LinkQuality(rate=1e7)
    width = 20_000
    require_same_bits(cluster.outcome(limits=HASTY, epochs=1, width=width), epochs=1, width=width)


def test_a_link_with_delay_and_loss(cluster):
    """One frame in twenty is lost in each direction, and each takes 100 ms."""
    cluster.switch.links[FIRST] = LinkQuality(delay=0.1, loss=0.05)
    require_same_bits(cluster.outcome())
    assert cluster.switch.dropped


def test_a_client_whose_link_is_down(cluster):
    """The workers wait for its next message."""
    down = [[CLIENT, other] for other in (SCHEDULER, *WORKERS)]
    require_same_bits(cluster.outcome(host=FIRST, cut=[str(cluster.switch.path), down, 2.0]))
    assert cluster.switch.dropped


OWNER = f"""
import time
from tests.dist.hosts.links import EmulatedHost
print(EmulatedHost(1).start(["sleep", "{PATIENCE}"]).pid, flush=True)
time.sleep({PATIENCE})
"""


def test_processes_of_hosts_end_with_the_process_that_made_the_hosts(cluster):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", OWNER], env=environment, stdout=subprocess.PIPE) as owner:
        sleeper = os.pidfd_open(int(owner.stdout.readline()))
        owner.kill()
    try:
        assert select.select([sleeper], [], [], PATIENCE)[0]
    finally:
        os.close(sleeper)
