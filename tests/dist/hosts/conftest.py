"""Five hosts with a cluster: the scheduler on the first, workers on the next three, the client on the last."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from tests.dist.hosts.links import EmulatedHost, Switch
from tests.dist.hosts.page import ROOT, commands
from tests.support.patience import PATIENCE

SCHEDULER, *WORKERS, CLIENT = 1, 2, 3, 4, 5
DEFAULTS = {
    "workers": len(WORKERS), "epochs": 3, "host": 0, "step": 5, "cut": None, "limits": {}, "place": "before_the_sum",
    "checkpoint": "", "width": 16,
}  # fmt: skip


class HostCluster:
    """A cluster on hosts. Mutable: its processes and links."""

    def __init__(self, hosts: dict[int, EmulatedHost], switch: Switch, folder: Path) -> None:
        self.hosts, self.switch, self.folder = hosts, switch, folder
        self.environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "DASK_DISTRIBUTED__WORKER__PRELOAD": "tests.dist.orphans",
        }

    def start(self, number: int, command: str, **environment: str) -> subprocess.Popen:
        """Start a shell command of the page on a host, at its address."""
        log = (self.folder / f"host{number}.log").open("a")
        with log:
            return self.hosts[number].start(
                ["sh", "-c", "exec " + command.replace("10.77.0.2", self.hosts[number].address).strip()],
                cwd=self.folder,
                env={**self.environment, **environment},
                stdout=log,
                stderr=log,
            )

    def start_all(self) -> None:
        certificates, scheduler, worker = commands()
        subprocess.run(["sh", "-ec", certificates], cwd=self.folder, check=True, capture_output=True)
        self.start(SCHEDULER, scheduler)
        for number in WORKERS:
            self.start(number, worker)

    def train(self, **options: Any) -> subprocess.Popen:
        """Start a training on the client's host."""
        text = json.dumps({**DEFAULTS, **options})
        command = [sys.executable, "-m", "tests.dist.hosts.trainer", text]
        return self.hosts[CLIENT].start(
            command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, text=True
        )

    def outcome(self, **options: Any) -> dict[str, Any]:
        """Train, and return what the client prints."""
        text, _ = self.train(**options).communicate(timeout=PATIENCE)
        return json.loads(text)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostCluster]:
    absent = [x for x in ("ip", "setpriv", "openssl") if shutil.which(x) is None]
    if absent or not sys.platform.startswith("linux"):
        pytest.skip(f"hosts need Linux and its programs; absent: {', '.join(absent) or 'Linux'}")
    folder = tmp_path_factory.mktemp("hosts")
    with ExitStack() as stack:
        try:
            hosts = {i: stack.enter_context(closing(EmulatedHost(i))) for i in (SCHEDULER, *WORKERS, CLIENT)}
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"hosts need the right to make network namespaces and interfaces: {error}")
        switch = stack.enter_context(closing(Switch(hosts.values(), folder / "switch")))
        cluster = HostCluster(hosts, switch, folder)
        cluster.start_all()
        yield cluster
