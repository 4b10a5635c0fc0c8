"""One process of `benchmarks.overlap model`: seconds of sums of float32 arrays with those of the other members.

It writes a line when it is ready, reads the addresses of all members, and writes a line of JSON: for each size the wall
seconds of each sum. Arguments: number of this member, number of members, its host, elements and sums as ``1000x5``.
"""

import json
import sys
import time
from contextlib import closing

import numpy as np

from benchmarks.sum_members import say
from cgraph.dist.limits import Limits
from cgraph.dist.mesh import Mesh
from cgraph.dist.sockets import Door, Secrets
from cgraph.dist.sums import peers_of, sum_over_members
from cgraph.dist.tree import parts_of


def main(me: int, members: int, host: str, sizes: list[str]) -> None:
    shards = 1 << (members - 1).bit_length()
    deal = [1 + (i < shards - members) for i in range(members)]
    times = []
    with closing(Door(host, Secrets(b"b" * 32), Limits())) as door:
        doors = [tuple(x) for x in json.loads(say(json.dumps(door.address)))]
        with closing(Mesh(door, 1, me, doors, peers_of(me, deal), Limits())) as mesh:
            for number, size in enumerate(sizes):
                n, count = map(int, size.split("x"))
                times.append([one_sum(mesh, 1000 * number + i, deal, n) for i in range(count + 1)][1:])
            say("done")  # no member closes before all have measured
    say(json.dumps(times))


def one_sum(mesh: Mesh, step: int, deal: list[int], n: int) -> float:
    """Return the seconds of a sum, from the moment when all members are ready."""
    first = sum(deal[: mesh.me])
    small, parts = ([(part, np.zeros(m, np.float32)) for part in parts_of(first, deal[mesh.me])] for m in (8, n))
    sum_over_members(mesh, 500_000 + step, deal, small)
    began = time.perf_counter()
    sum_over_members(mesh, step, deal, parts)
    return time.perf_counter() - began


if __name__ == "__main__":
    _, me, members, host, *sizes = sys.argv
    main(int(me), int(members), host, sizes)
