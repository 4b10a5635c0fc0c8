"""Processes that die, stop, come late or have another version: the same bits, or an error that says why."""

import os
import select
import signal
import subprocess
import sys
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("distributed", reason="distributed is not installed")

import nn
from cgraph.dist.limits import Limits
from cgraph.errors import MemberError
from tests.dist.clusters import alone, cluster, digest, loader, network, trained
from tests.dist.dying import PLACES, at, other_version, stop
from tests.support.patience import PATIENCE

STEPS, WORKERS = 12, 3
PATIENT = Limits(round=0.3, gather=PATIENCE)
HASTY = Limits(round=0.3, silence=0.2, answer=1.0, gather=PATIENCE)


@pytest.fixture
def client():
    """Of a cluster of its own: workers that have died are no start for a test."""
    with cluster(WORKERS, processes=True) as client:
        yield client


@pytest.fixture(scope="module")
def known():
    model = network()
    return alone(model, loader(), STEPS, 8), digest(model)


def workers_of(client):
    return sorted(client.scheduler_info(n_workers=-1)["workers"])


def require_known(client, known, **options):
    model = network()
    history = trained(client, model, epochs=3, **{"limits": PATIENT, **options})
    np.testing.assert_array_equal(history.loss, np.float32(known[0]))
    assert digest(model) == known[1]


def test_blocks_and_steps_have_the_bits_of_one_process_while_workers_die(client, known):
    """All that the quick tests have of processes, on one cluster."""
    import dask.array as da

    x = np.random.default_rng(0).standard_normal((103, 8)).astype(np.float32)
    predict = nn.compile(network(), batch=16)
    found = predict.map_batches(da.from_array(x, chunks=(17, 8)))
    np.testing.assert_array_equal(found.compute(), predict(x))
    first, _, third = workers_of(client)
    client.run(other_version, workers=[third])
    client.run(at, "in_the_sum", 5, workers=[first])
    with pytest.warns(UserWarning, match=f"worker {third} takes no part: .*0.0.7"):
        require_known(client, known)


@pytest.mark.slow
@pytest.mark.parametrize("place", [x for x in PLACES if x != "sending_state"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_death_changes_no_bit(client, known, place, count):
    client.run(at, place, 5, workers=workers_of(client)[:count])
    require_known(client, known)


@pytest.mark.slow
def test_deaths_while_newcomers_take_the_state(client):
    """One dies; who gives its successor the state dies, and so does the next: nobody is left of the first."""
    first, *others = workers_of(client)
    client.run(at, "before_the_sum", 5, workers=[first])
    client.run(at, "sending_state", 0, workers=others)
    data, model, other = loader(change=slowly), network(), network()
    history = trained(client, model, data, epochs=40, limits=PATIENT)
    want = alone(other, loader(), len(history.loss), 8)
    np.testing.assert_array_equal(history.loss, np.float32(want))
    assert digest(model) == digest(other)
    assert not {first, *others} & {*workers_of(client)}


def slowly(arrays, rng):
    time.sleep(0.03)
    return arrays


@pytest.mark.slow
@pytest.mark.parametrize("place", ["before_the_sum", "after_the_sum"])
def test_who_stops_is_left_out_and_comes_back(client, place):
    one = workers_of(client)[1]
    (pid,) = client.run(os.getpid, workers=[one]).values()
    client.run(at, place, 5, stop, workers=[one])
    threading.Timer(4.0, os.kill, (pid, signal.SIGCONT)).start()
    data, model, other = loader(change=slowly), network(), network()
    history = trained(client, model, data, epochs=30, limits=HASTY)
    want = alone(other, loader(), len(history.loss), 8)
    np.testing.assert_array_equal(history.loss, np.float32(want))
    assert digest(model) == digest(other)


@pytest.mark.slow
def test_the_last_member_is_waited_for_within_a_bound(client):
    """All have gone and none comes back."""
    for worker in workers_of(client)[1:]:
        client.retire_workers([worker])
    client.run(at, "before_the_sum", 2, workers=workers_of(client))
    client.cluster.scale(0)
    with pytest.raises(MemberError, match="no worker has been ready to train for 2"):
        trained(client, network(), limits=Limits(round=0.3, gather=2.0))


@pytest.mark.slow
def test_workers_of_another_version_alone_are_refused_by_reason(client):
    client.run(other_version)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(MemberError, match="no worker can train; .*it was saved by cgraph .*0.0.7"):
            trained(client, network())
        with pytest.raises(MemberError, match="no worker can train; .*it has cgraph 0.0.7 for"):
            trained(client, network)


@pytest.mark.slow
def test_an_interrupt_frees_the_workers(client, known):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            trained(client, network(), loader(change=slowly), epochs=1000)
    finally:
        signal.signal(signal.SIGINT, before)
    require_known(client, known)


CLIENT = """
from distributed import Client
from tests.dist.clusters import *
from tests.dist.test_deaths import slowly
if __name__ == "__main__":
    with Client({address!r}) as client:
        trained(client, network(), loader(change=slowly), epochs=3, checkpoint=nn.Checkpoint({path!r}, steps=1))
"""


@pytest.mark.slow
def test_a_client_that_is_killed_is_followed_by_another(client, known, tmp_path):
    path, script = tmp_path / "at.json", tmp_path / "client.py"
    script.write_text(CLIENT.format(address=client.scheduler.address, path=str(path)))
    root = str(Path(__file__).parents[2])
    other = subprocess.Popen(
        [sys.executable, script], env={**os.environ, "PYTHONPATH": root}, stderr=subprocess.DEVNULL
    )
    end = time.monotonic() + PATIENCE
    while not path.exists() and other.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    other.kill()
    other.wait()
    assert path.exists()
    require_known(client, known, checkpoint=nn.Checkpoint(path))


OWNER = """
import os, signal, time
from tests.dist.clusters import cluster
if __name__ == "__main__":
    with cluster(2, processes=True) as client:
        pids = list(client.run(os.getpid).values())
        os.kill(pids[0], signal.SIGSTOP)
        print(*pids, flush=True)
        time.sleep({seconds})
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="no descriptors of processes here")
def test_workers_end_with_the_process_that_started_them(tmp_path):
    """Also one that is stopped, and cannot look after its parent."""
    script = tmp_path / "owner.py"
    script.write_text(OWNER.format(seconds=PATIENCE))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    owner = subprocess.Popen([sys.executable, script], env=environment, stdout=subprocess.PIPE)
    assert owner.stdout is not None
    workers = [os.pidfd_open(int(pid)) for pid in owner.stdout.readline().split()]
    owner.kill()
    owner.wait()
    try:
        assert len(workers) == 2
        assert all(select.select([worker], [], [], PATIENCE)[0] for worker in workers)
    finally:
        for worker in workers:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(worker, signal.SIGKILL)
            os.close(worker)


@pytest.mark.slow
def test_a_worker_that_dies_in_a_block_costs_no_row(client):
    import dask.array as da

    x = np.random.default_rng(0).standard_normal((400, 8)).astype(np.float32)
    predict = nn.compile(network(), batch=16)
    pid, *_ = client.run(os.getpid).values()
    found = client.compute(predict.map_batches(da.from_array(x, chunks=(10, 8)).map_blocks(late)))
    time.sleep(0.3)
    os.kill(pid, signal.SIGKILL)
    np.testing.assert_array_equal(found.result(timeout=PATIENCE), predict(x))


def late(block):
    time.sleep(0.05)
    return block
