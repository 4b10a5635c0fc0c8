"""Hosts with a network namespace each, and the switch between them: rate, delay, loss and cut links.

A namespace belongs to one thread of this process, and its interface to one descriptor. Both end with this process,
however it ends, so nothing has to be removed.
"""

import ctypes
import fcntl
import heapq
import itertools
import json
import os
import random
import select
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from cgraph.record import Record

CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
FRAME_BYTES = 2048
QUEUE = 0.25  # seconds of frames that a link of limited rate stores before it drops one
FOREVER = 1e9


def address_of(number: int) -> str:
    return f"10.77.0.{number}"


def enter_namespace() -> int:
    """Move this thread to a new network namespace, and return the number by which the kernel knows the thread.

    Raises
        PermissionError: this process may not make a namespace
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        error = ctypes.get_errno()
        raise PermissionError(error, f"a network namespace: {os.strerror(error)}")
    return threading.get_native_id()


class LinkQuality(Record):
    """A host's link to the switch, the same in both directions.

    Fields
        rate: bits per second
        delay: seconds, in each direction
        loss: probability that a frame is dropped, in each direction
    """

    rate: float = 1e10
    delay: float = 0.0
    loss: float = 0.0


class EmulatedHost:
    """A host of its own: a thread in a new network namespace, and all processes that it starts.

    Raises
        PermissionError: this process may not make a namespace or an interface
    """

    def __init__(self, number: int) -> None:
        self.number, self.address = number, address_of(number)
        self.processes: list[subprocess.Popen] = []
        self.thread = ThreadPoolExecutor(1)
        try:
            self.tap = self.thread.submit(self._enter).result()
        except BaseException:
            self.thread.shutdown()
            raise

    def _enter(self) -> int:
        """Move this thread to a new namespace with one interface; return its descriptor."""
        enter_namespace()
        tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", b"eth0", IFF_TAP | IFF_NO_PI))
        for line in (
            "link set lo up",
            f"link set eth0 address 02:00:00:00:00:{self.number:02x} up",
            f"addr add {self.address}/24 dev eth0",
        ):
            subprocess.run(["ip", *line.split()], check=True)
        return tap

    def start(self, command: list[str], **options: Any) -> subprocess.Popen:
        """Start a process on this host, which ends with this process."""
        whole = ["setpriv", "--pdeathsig", "KILL", *command]
        process = self.thread.submit(subprocess.Popen, whole, **options).result()
        self.processes.append(process)
        return process

    def signal(self, number: int) -> None:
        """Send a signal to all processes of this host, also those that its processes started."""
        namespace = self.thread.submit(os.readlink, "/proc/thread-self/ns/net").result()
        for pid in [x for x in os.listdir("/proc") if x.isdigit()]:
            with suppress(OSError):  # it has ended, or is not ours
                if os.readlink(f"/proc/{pid}/ns/net") == namespace and int(pid) != os.getpid():
                    os.kill(int(pid), number)

    def kill(self) -> None:
        """End all processes of this host at once."""
        processes, self.processes = self.processes, []
        for process in processes:
            process.kill()
            process.wait()

    def close(self) -> None:
        self.kill()
        os.close(self.tap)
        self.thread.shutdown()


class Switch:
    """The switch between hosts: it forwards frames in one thread. Mutable: links, cuts and queued frames.

    Fields
        links: of each host, by its number
        cuts: pairs of hosts that exchange no frames, until when
        dropped: number of frames that were cut or lost
        path: address where processes of any host give orders
        actions: what they may order, by name; it has happened before the order is answered
    """

    def __init__(self, hosts: Iterable[EmulatedHost], path: Path, seed: int = 0) -> None:
        self.taps = {host.number: host.tap for host in hosts}
        self.links = dict.fromkeys(self.taps, LinkQuality())
        self.cuts: dict[frozenset[int], float] = {}
        self.free = {(number, way): 0.0 for number in self.taps for way in ("up", "down")}
        self.queue: list[tuple[float, int, int, bytes]] = []
        self.count, self.random, self.closed, self.dropped = itertools.count(), random.Random(seed), False, 0
        self.path = path
        self.actions: dict[str, Callable[..., None]] = {"cut": self.cut}
        self.control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.control.bind(str(path))
        self.control.listen()
        self.poll = select.poll()
        self.callbacks: dict[int, Callable[[], None]] = {self.control.fileno(): self._obey}
        for number, tap in self.taps.items():
            self.callbacks[tap] = lambda number=number: self._receive(number)
        for descriptor in self.callbacks:
            self.poll.register(descriptor, select.POLLIN)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def cut(self, pairs: Iterable[Iterable[int]], seconds: float = FOREVER) -> None:
        """Drop all frames between pairs of hosts, from now on."""
        for pair in pairs:
            self.cuts[frozenset(pair)] = time.monotonic() + seconds

    def mend(self) -> None:
        """Restore all links, and count dropped frames anew."""
        self.dropped = 0
        self.cuts = {}
        self.links = dict.fromkeys(self.taps, LinkQuality())

    def close(self) -> None:
        self.closed = True
        self.thread.join()
        self.control.close()

    def _run(self) -> None:
        while not self.closed:
            wait = self.queue[0][0] - time.monotonic() if self.queue else 0.2
            for descriptor, _ in self.poll.poll(min(max(wait, 0.0), 0.2) * 1000):
                self.callbacks[descriptor]()
            while self.queue and self.queue[0][0] <= time.monotonic():
                _, _, number, frame = heapq.heappop(self.queue)
                with suppress(BlockingIOError):  # the host's own queue is full
                    os.write(self.taps[number], frame)

    def _obey(self) -> None:
        """Let a thread carry out what a process orders, since the action may wait for frames."""
        connection, _ = self.control.accept()
        threading.Thread(target=self._carry_out, args=(connection,), daemon=True).start()

    def _carry_out(self, connection: socket.socket) -> None:
        with connection:
            name, arguments = json.loads(connection.recv(4096))
            self.actions[name](*arguments)
            with suppress(OSError):  # the order was to end that process
                connection.sendall(b"done")

    def _receive(self, source: int) -> None:
        with suppress(BlockingIOError):
            while True:
                frame, now = os.read(self.taps[source], FRAME_BYTES), time.monotonic()
                is_unicast = frame[:5] == b"\2\0\0\0\0"
                for target in [frame[5]] if is_unicast else self.taps:
                    if target != source and target in self.taps:
                        self._send(frame, source, target, now)

    def _send(self, frame: bytes, source: int, target: int, now: float) -> None:
        """Queue a frame until it has passed the sender's link and the receiver's, unless it is dropped."""
        if now < self.cuts.get(frozenset((source, target)), 0.0):
            self.dropped += 1
            return
        due = now
        for key in ((source, "up"), (target, "down")):
            link = self.links[key[0]]
            begin = max(due, self.free[key])
            if begin > due + QUEUE or self.random.random() < link.loss:
                self.dropped += 1
                return
            self.free[key] = begin + len(frame) * 8 / link.rate
            due = self.free[key] + link.delay
        heapq.heappush(self.queue, (due, next(self.count), target, frame))


class Order:
    """An order to a switch, which a process of any host gives once. Mutable: whether it has."""

    def __init__(self, path: Path | str, action: str, *arguments: Any) -> None:
        self.path, self.text, self.is_done = str(path), json.dumps([action, arguments]), False

    def __call__(self) -> None:
        if not self.is_done:
            self.is_done = True
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.connect(self.path)
                connection.sendall(self.text.encode())
                assert connection.recv(4) == b"done"
