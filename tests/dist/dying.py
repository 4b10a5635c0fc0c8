"""How a worker's process dies or stops: put into it from outside, at one place of one step."""

import os
import signal
from collections.abc import Callable

from cgraph.dist import mesh
from nn.parallel import worker


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def at(place: str, step: int, end: Callable[[], None] = die) -> None:
    """From now on this process ends at a place of a step."""
    PLACES[place](step, end)


def before_the_sum(step: int, end: Callable[[], None]) -> None:
    known = worker.TrainingWorker.arrays

    def arrays(self, shard):
        if self.step == step:
            end()
        return known(self, shard)

    worker.TrainingWorker.arrays = arrays


def in_the_sum(step: int, end: Callable[[], None]) -> None:
    """Half of a frame has gone out."""
    known = mesh.Mesh.exchange

    def exchange(self, now, sent, *others):
        if now == step:
            (first, *_) = self.links.values()
            tag, x = next((tag, x) for to, tag, x in sent if to == first.number)
            first.socket.setblocking(True)
            first.socket.sendall(mesh.FRAME.pack(mesh.MAGIC, tag, now, x.nbytes) + bytes(mesh.raw(x))[: x.nbytes // 2])
            end()
        return known(self, now, sent, *others)

    mesh.Mesh.exchange = exchange


def after_the_sum(step: int, end: Callable[[], None]) -> None:
    original = worker.sum_over_members

    def sum_over_members(mesh, now, deal, parts):
        total = original(mesh, now, deal, parts)
        if now == step:
            end()
        return total

    worker.sum_over_members = sum_over_members


def after_the_update(step: int, end: Callable[[], None]) -> None:
    known = worker.TrainingWorker.run_step

    def one(self, mesh, order):
        found = known(self, mesh, order)
        if self.step == step + 1:
            end()
        return found

    worker.TrainingWorker.run_step = one


def sending_state(step: int, end: Callable[[], None]) -> None:
    """When it is the one whose state others take; some of it has gone."""
    known = worker.TrainingWorker.send_state

    def send_state(self, mesh, order):
        if order.behind and order.me == order.source:
            link = mesh.links[order.behind[0]]
            link.send(0, order.step, next(iter(self.state.values())).cell.array)
            link.move()
            end()
        return known(self, mesh, order)

    worker.TrainingWorker.send_state = send_state


PLACES = {f.__name__: f for f in (before_the_sum, in_the_sum, after_the_sum, after_the_update, sending_state)}


def other_version() -> None:
    """This process has another version of cgraph."""
    from cgraph.saved import manifest
    from nn.parallel import messages

    manifest.__version__ = messages.__version__ = "0.0.7"
