"""One process of `benchmarks.sums`: sums of float32 arrays with the same array of each other member.

It writes a line when it is ready, reads the addresses of all members, and writes a line of JSON: for each size wall
seconds of each sum, processor seconds of one, and the share of elements that differ from the sum in the tree's order.
Arguments: library, number of this member, number of members, its host, megabytes of each size.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np

ROUNDS = {1: 60, 10: 15, 100: 4}  # by megabytes
PORT = 17_000


def values(member: int, n: int) -> np.ndarray:
    """Return a member's array, whose sum depends on the order."""
    rng = np.random.default_rng(member)
    block = rng.standard_normal(250_000, np.float32) * np.float32(10.0) ** rng.integers(-4, 5, 250_000)
    return np.tile(block.astype(np.float32), n // 250_000)


def tree_sum(arrays: list[np.ndarray]) -> np.ndarray:
    """Return the sum of neighbours, and of neighbours of these."""
    while len(arrays) > 1:
        arrays = [sum(arrays[i : i + 2][1:], arrays[i]) for i in range(0, len(arrays), 2)]
    return arrays[0]


def measure(me: int, members: int, sizes: list[int], add: Callable[[np.ndarray, int], np.ndarray]) -> dict[str, Any]:
    """Return the figures of each size; `add` takes an array, which it may change, and the number of the sum."""
    figures, step = {}, 0
    for size in sizes:
        n = size * 250_000
        own = values(me, n)
        total = add(own.copy(), step)
        wrong = float((total != tree_sum([values(i, n) for i in range(members)])).mean())
        own[...] = 0  # sums of sums would overflow
        walls, processor = [], time.process_time()
        for i in range(ROUNDS[size]):
            began = time.perf_counter()
            add(own, step + 1 + i)
            walls.append(time.perf_counter() - began)
        step += 1 + ROUNDS[size]
        figures[str(size)] = {"walls": walls, "cpu": (time.process_time() - processor) / ROUNDS[size], "wrong": wrong}
    return figures


def say(line: str) -> str:
    """Write a line, and return the one that comes."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
    return sys.stdin.readline()


def own(me: int, members: int, host: str, sizes: list[int]) -> dict[str, Any]:
    from cgraph.dist.limits import Limits
    from cgraph.dist.mesh import Mesh
    from cgraph.dist.sockets import Door, Secrets
    from cgraph.dist.sums import peers_of, sum_over_members
    from cgraph.dist.tree import parts_of

    deal = [4 // members + (i < 4 % members) for i in range(members)]  # four shards
    first = sum(deal[:me])
    with closing(Door(host, Secrets(b"b" * 32), Limits())) as door:
        doors = [tuple(x) for x in json.loads(say(json.dumps(door.address)))]
        with closing(Mesh(door, 1, me, doors, peers_of(me, deal), Limits())) as mesh:

            def add(x: np.ndarray, step: int) -> np.ndarray:
                parts = parts_of(first, deal[me])
                return sum_over_members(mesh, step, deal, [(part, x if part == parts[0] else x * 0) for part in parts])

            figures = measure(me, members, sizes, add)
            say("done")  # no member closes before all have measured
            return figures


def dask(me: int, members: int, host: str, sizes: list[int]) -> dict[str, Any]:
    """Halving and doubling over dask's comms: the order of our sums."""
    from distributed.comm import connect, listen
    from distributed.protocol import to_serialize

    loop, links, came = asyncio.new_event_loop(), {}, asyncio.Queue()

    async def accept(comm: Any) -> None:
        links[(await comm.read())["me"]] = comm
        await came.put(None)

    async def start() -> Any:
        listener = listen(f"tcp://{host}:{PORT}", accept)
        await listener.start()
        return listener

    async def meet(hosts: list[str]) -> None:
        mates = [me ^ (1 << level) for level in range(members.bit_length() - 1)]
        for i in [x for x in mates if x < me]:
            links[i] = await connect(f"tcp://{hosts[i]}:{PORT}", timeout=60)
            await links[i].write({"me": me})
        for _ in [x for x in mates if x > me]:
            await came.get()

    async def swap(mate: int, out: np.ndarray) -> np.ndarray:
        _, answer = await asyncio.gather(links[mate].write({"x": to_serialize(out)}), links[mate].read())
        return answer["x"]

    async def total(x: np.ndarray) -> np.ndarray:
        span, spans = slice(0, len(x)), []
        for level in range(members.bit_length() - 1):
            mate, middle = me ^ (1 << level), (span.start + span.stop) // 2
            halves = [slice(span.start, middle), slice(middle, span.stop)]
            mine, other = halves if me < mate else halves[::-1]
            more = await swap(mate, x[other])
            x[mine] = x[mine] + more if me < mate else more + x[mine]
            spans.append((mate, other))
            span = mine
        for mate, other in reversed(spans):
            x[other] = await swap(mate, x[span])
            span = slice(min(span.start, other.start), max(span.stop, other.stop))
        return x

    loop.run_until_complete(start())
    loop.run_until_complete(meet([x for x, _ in json.loads(say(json.dumps([host, PORT])))]))
    figures = measure(me, members, sizes, lambda x, step: loop.run_until_complete(total(x)))
    loop.run_until_complete(loop.run_in_executor(None, say, "done"))  # the loop still sends the last bytes
    return figures


def gloo(me: int, members: int, host: str, sizes: list[int]) -> dict[str, Any]:
    import torch
    from torch import distributed

    torch.set_num_threads(1)
    first = json.loads(say(json.dumps([host, PORT])))[0][0]
    os.environ |= {"MASTER_ADDR": first, "MASTER_PORT": str(PORT), "GLOO_SOCKET_IFNAME": "eth0"}
    distributed.init_process_group("gloo", rank=me, world_size=members)

    def add(x: np.ndarray, step: int) -> np.ndarray:
        distributed.all_reduce(torch.from_numpy(x))
        return x

    figures = measure(me, members, sizes, add)
    say("done")
    return figures


if __name__ == "__main__":
    library, me, members, host, *sizes = sys.argv[1:]
    work = {"own": own, "dask": dask, "gloo": gloo}[library]
    say(json.dumps(work(int(me), int(members), host, [int(x) for x in sizes])))
