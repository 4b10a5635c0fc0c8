"""Hosts that differ from the others, and strangers on the network: the same bits."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("distributed", reason="distributed is not installed")

from cgraph.engine.cpu.engine import CpuEngine
from tests.dist.hosts.cluster import CLIENT, SCHEDULER, WORKERS, preloads
from tests.dist.hosts.faults import HASTY
from tests.dist.hosts.page import commands
from tests.dist.hosts.test_links import bits, require_same_bits

ORPHANS, HERE = "tests.dist.orphans", "tests.dist.hosts"
pytestmark = pytest.mark.slow


@pytest.fixture
def start(cluster):
    """A function that starts a worker for one test, on a host that has none."""
    processes = []

    def start(number, *preload, command="{}", **environment):
        command = command.format(cluster.worker.strip())
        processes.append(cluster.start(number, command, **preloads(ORPHANS, *preload), **environment))

    yield start
    for process in processes:
        process.kill()
        process.wait()


def test_workers_with_a_full_disk_or_a_clock_that_is_an_hour_ahead(cluster, start, tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("another clock needs a C compiler")
    library = str(tmp_path / "clock.so")
    source = Path(__file__).with_name("clock.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    start(SCHEDULER, LD_PRELOAD=library, CLOCK_AHEAD="3600")
    folder = cluster.folder / "full"
    folder.mkdir()
    mount = f"unshare --mount sh -c 'mount -t tmpfs -o size=1m full {folder} && exec {{}} --local-directory {folder}'"
    start(CLIENT, f"{HERE}.preload_full", command=mount, XDG_CACHE_HOME=str(folder), TMPDIR=str(folder))
    outcome = cluster.outcome(workers=5, limits=HASTY, factory=True)
    assert outcome["loss"] == bits(12)[0].tolist() and not outcome["warnings"]


def test_a_worker_of_another_version_takes_no_part(cluster, start):
    start(SCHEDULER, f"{HERE}.preload_version")
    outcome = cluster.outcome(workers=4, limits=HASTY)
    require_same_bits(outcome)
    (text,) = outcome["warnings"]
    assert "takes no part: it has cgraph 0.0.1 for" in text and cluster.hosts[SCHEDULER].address in text


def test_code_is_for_the_processor_of_the_host_that_runs_least(cluster, start):
    start(SCHEDULER, f"{HERE}.preload_processor")
    outcome = cluster.outcome(workers=4, limits=HASTY)
    losses, name = bits(12, engine=CpuEngine("portable"))
    np.testing.assert_array_equal(np.float32(outcome["loss"]), losses)
    assert outcome["digest"] == name and not outcome["warnings"]


def test_strangers_learn_nothing_and_stop_nobody(cluster):
    """Three hundred at each door; some with certificates of their own, and a wrong token."""
    cluster.outcome(epochs=0.25)  # all workers are there
    before = {x for worker in WORKERS for x in cluster.listening(worker)}
    openssl = commands()[0].replace("key.pem", "stranger-key.pem").replace("cert.pem", "stranger.pem")
    subprocess.run(["sh", "-ec", openssl], cwd=cluster.folder, check=True, capture_output=True)
    reports = []

    def come(count):
        addresses = {x for worker in WORKERS for x in cluster.listening(worker)}
        assert len(addresses - before) == len(WORKERS)  # the doors
        line = json.dumps([[*x, 0 if x in before else count] for x in sorted(addresses)])
        strangers = cluster.hosts[SCHEDULER].start(
            [sys.executable, "-m", "tests.dist.hosts.strangers"], cwd=cluster.folder, env=cluster.environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        strangers.stdin.write(line + "\n")
        strangers.stdin.flush()
        reports.append((json.loads(strangers.stdout.readline()), strangers))

    cluster.switch.actions["come"] = come
    outcome = cluster.outcome(order=cluster.order("come", 300), where=["before_the_sum", 5, WORKERS[0]], limits=HASTY)
    require_same_bits(outcome)
    ((report, strangers),) = reports
    assert report == {"connections": 900, "learned": []} and strangers.poll() is None
    strangers.communicate()
