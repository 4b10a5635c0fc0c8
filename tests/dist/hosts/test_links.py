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
from tests.dist.hosts.page import ROOT
from tests.support.patience import PATIENCE

FIRST, SECOND, THIRD = WORKERS
OTHERS = SCHEDULER, SECOND, THIRD, CLIENT


@pytest.fixture(autouse=True)
def whole_links(cluster):
    yield
    cluster.switch.mend()


def require_same_bits(outcome, epochs=3):
    model = network()
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


OWNER = f"""
import time
from tests.dist.hosts.links import Host
print(Host(1).start(["sleep", "{PATIENCE}"]).pid, flush=True)
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
