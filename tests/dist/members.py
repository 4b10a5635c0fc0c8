"""Members of a round as threads of this process, each with its door and its mesh."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import numpy as np

from cgraph.dist.limits import Limits
from cgraph.dist.mesh import FRAME, MAGIC, Mesh
from cgraph.dist.sockets import Door, Secrets
from cgraph.dist.sums import peers_of
from cgraph.dist.tree import add_neighbours
from tests.support.patience import PATIENCE

HASTY = Limits(silence=0.05, answer=120.0, step=PATIENCE)
STRICT = Limits(silence=0.05, answer=0.2, step=0.2)
SECRETS = Secrets(b"t" * 32)


def together(deal: list[int], work: Callable[[Mesh], Any], limits: Limits = HASTY, round: int = 1) -> list[Any]:
    """What each member makes of its mesh, or the exception that ended it."""
    with ExitStack() as stack:
        doors = [stack.enter_context(closing(Door("127.0.0.1", SECRETS, limits))) for _ in deal]
        addresses = [door.address for door in doors]

        def one(me: int) -> Any:
            try:
                with closing(Mesh(doors[me], round, me, addresses, peers_of(me, deal), limits)) as mesh:
                    return work(mesh)
            except Exception as error:
                return error

        pool = stack.enter_context(ThreadPoolExecutor(len(deal)))
        return list(pool.map(one, range(len(deal))))


def shards_of(count: int, n: int) -> np.ndarray:
    """Numbers whose sum depends on the order ``[count, n]``."""
    rng = np.random.default_rng(count)
    return (rng.standard_normal((count, n)) * 10.0 ** rng.integers(-4, 5, (count, n))).astype(np.float32)


def parts(x: np.ndarray, first: int, count: int) -> list:
    return add_neighbours([((i, 1), x[i].copy()) for i in range(first, first + count)])


def tree_sum(x: np.ndarray) -> np.ndarray:
    """The reference: halves by recursion."""
    return x[0] if len(x) == 1 else tree_sum(x[: len(x) // 2]) + tree_sum(x[len(x) // 2 :])


def started(work: Callable[[], Any]) -> threading.Thread:
    found = threading.Thread(target=work, daemon=True)
    found.start()
    return found


def frame(tag, step, body, magic=MAGIC, nbytes=None):
    return FRAME.pack(magic, tag, step, len(body) if nbytes is None else nbytes) + body


def left_alone(link):
    """The other end has closed it."""
    try:
        link.settimeout(PATIENCE)
        return link.recv(1) == b""
    except ConnectionError:
        return True
