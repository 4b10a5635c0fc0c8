"""Five hosts with a cluster: the scheduler on the first, workers on the next three, the client on the last."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.dist.hosts.links import EmulatedHost, Switch
from tests.dist.hosts.page import ROOT, commands
from tests.support.patience import PATIENCE

SCHEDULER, *WORKERS, CLIENT = 1, 2, 3, 4, 5
PROGRAMS = "ip", "setpriv", "openssl", "unshare", "mount", "dask"
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
SMALL = "small"  # the client's file system of SMALL_BYTES, in the folder of the cluster
SMALL_BYTES = 1 << 20
LOOPBACK = "0100007F"  # 127.0.0.1 in Linux's table of sockets
CLIENT_TIMEOUT = 12  # seconds, instead of dask's 30, after which the client drops its connection to the scheduler


class HostCluster:
    """A cluster on hosts. Mutable: its processes and links.

    Fields
        trainer: the client's process, which trains when it is told
    """

    def __init__(self, hosts: dict[int, EmulatedHost], switch: Switch, folder: Path) -> None:
        self.hosts, self.switch, self.folder = hosts, switch, folder
        self.trainer: subprocess.Popen | None = None
        self.environment = {**os.environ, "PATH": PATH, "PYTHONPATH": str(ROOT), **preloads("tests.dist.orphans")}
        switch.actions |= {"kill": self.kill, "stop": self.stop, "fill": self.fill}
        (folder / SMALL).mkdir()
        certificates, self.scheduler, self.worker = commands()
        subprocess.run(["sh", "-ec", certificates], cwd=folder, check=True, capture_output=True)

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
        self.start(SCHEDULER, self.scheduler)
        for number in WORKERS:
            self.start(number, self.worker)

    def kill(self, number: int) -> None:
        """End a host's processes, and start its worker again."""
        self.hosts[number].kill()
        if number in WORKERS:
            self.start(number, self.worker)

    def stop(self, number: int) -> None:
        """Stop a host's processes without ending them."""
        self.hosts[number].signal(signal.SIGSTOP)

    def resume(self, number: int) -> None:
        """Let a host's processes continue."""
        self.hosts[number].signal(signal.SIGCONT)

    def order(self, action: str, *arguments: Any) -> list:
        """Return an order to this cluster's switch, for `train`."""
        return [str(self.switch.path), action, *arguments]

    def train(self, **options: Any) -> None:
        """Tell the client's process to train, as `tests.dist.hosts.trainer` describes. Start one if none runs."""
        if self.trainer is None or self.trainer.poll() is not None:
            script = f"mount -t tmpfs -o size={SMALL_BYTES} small {SMALL} && exec {sys.executable} -m {TRAINER}"
            with (self.folder / "trainer.log").open("a") as log:
                self.trainer = self.hosts[CLIENT].start(
                    ["unshare", "--mount", "sh", "-c", script],
                    cwd=self.folder,
                    env={**self.environment, "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": f"{CLIENT_TIMEOUT}s"},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                )
        assert self.trainer.stdin is not None
        with suppress(BrokenPipeError):  # it was killed just now, as `answer` says
            self.trainer.stdin.write(json.dumps(options) + "\n")
            self.trainer.stdin.flush()

    def answer(self) -> dict[str, Any] | None:
        """Return what the client's process has to say about the training; None when it was killed."""
        assert self.trainer is not None and self.trainer.stdout is not None
        if not select.select([self.trainer.stdout], [], [], PATIENCE)[0]:
            return None
        text = self.trainer.stdout.readline()
        if not text:
            self.trainer.wait(PATIENCE)
        return json.loads(text) if text else None

    def outcome(self, **options: Any) -> dict[str, Any]:
        """Train, and return what came of it."""
        self.train(**options)
        answer = self.answer()
        assert answer is not None, (self.folder / "trainer.log").read_text()[-4000:]
        return answer

    def small(self, name: str) -> Path:
        """Return the path of a file in the client's small file system, as this process reaches it."""
        assert self.trainer is not None
        return Path(f"/proc/{self.trainer.pid}/root{self.folder}/{SMALL}/{name}")

    def listening(self, number: int) -> set[tuple[str, int]]:
        """Return the addresses where a host's processes accept connections from other hosts."""
        host = self.hosts[number]
        lines = Path(f"/proc/{host.processes[0].pid}/net/tcp").read_text().splitlines()[1:]
        sockets = [line.split()[1:4] for line in lines]
        open_here = [here.split(":") for here, _, state in sockets if state == "0A"]
        return {(host.address, int(port, 16)) for address, port in open_here if address != LOOPBACK}

    def fill(self, name: str) -> None:
        """Fill the client's small file system with a file."""
        with suppress(OSError), self.small(name).open("wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass


TRAINER = "tests.dist.hosts.trainer"


def preloads(*modules: str) -> dict[str, str]:
    """Return the environment in which dask's workers load modules of the tests first."""
    return {"DASK_DISTRIBUTED__WORKER__PRELOAD": json.dumps(modules)}


def missing() -> str:
    """Return why there can be no hosts here; empty if there can."""
    absent = [x for x in PROGRAMS if shutil.which(x, path=PATH) is None]
    if absent or not sys.platform.startswith("linux"):
        return f"hosts need Linux and its programs; absent: {', '.join(absent) or 'Linux'}"
    try:
        EmulatedHost(1).close()
    except (OSError, subprocess.CalledProcessError) as error:
        return f"hosts need the right to make network namespaces and interfaces: {error}"
    return ""


@contextmanager
def host_cluster(folder: Path) -> Iterator[HostCluster]:
    """A cluster on new hosts, whose processes end with the context or with this process."""
    with ExitStack() as stack:
        hosts = {i: stack.enter_context(closing(EmulatedHost(i))) for i in (SCHEDULER, *WORKERS, CLIENT)}
        switch = stack.enter_context(closing(Switch(hosts.values(), folder / "switch")))
        cluster = HostCluster(hosts, switch, folder)
        cluster.start_all()
        yield cluster
