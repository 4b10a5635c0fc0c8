"""Trainings over links that fail, with the bits of one process."""

import os
import select
import subprocess
import sys
from functools import cache

import numpy as np
import pytest

pytest.importorskip("distributed", reason="distributed is not installed")

from tests.dist.clusters import alone, digest, loader, network
from tests.dist.hosts.cluster import WORKERS
from tests.dist.hosts.faults import FAULTS, train_with
from tests.dist.hosts.page import ROOT
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.slow


@cache
def bits(steps, width=16, **options):
    """Losses and digest of the training by hand."""
    model = network(width=width)
    losses = np.float32(alone(model, loader(), steps, 8, **options))
    return losses, digest(model)


def require_same_bits(outcome, epochs=3, width=16):
    losses, name = bits(round(4 * epochs), width)
    np.testing.assert_array_equal(np.float32(outcome["loss"]), losses)
    assert outcome["digest"] == name


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_changes_no_bit(cluster, name):
    cluster.switch.dropped = 0
    options, attempts, _ = train_with(cluster, name)
    cluster.resume(WORKERS[0])
    require_same_bits(attempts[-1], options.get("epochs", 3), options.get("width", 16))
    order = options.get("order") or [None, ""]
    if name == "the client reaches no worker":
        assert not cluster.switch.dropped  # it talks to the scheduler alone
    else:
        assert cluster.switch.dropped or order[1] != "cut"
    if "client" in name and order[1] in ("kill", "fill"):
        first = attempts[0]
        assert len(attempts) == 2 and (first is None) == (order[1] == "kill")
        assert first is None or "No space left" in first["text"]
    else:
        assert len(attempts) == 1


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
