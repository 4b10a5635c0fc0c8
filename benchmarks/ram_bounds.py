"""Least bytes of RAM of the published networks on Cortex-M7 beside lower bounds that hold for every plan.

    python -m benchmarks.ram_bounds [--networks mbv2_w035,proxyless_w03]

For each network: bytes of the arena without a budget, and three bounds of plans whose steps compute whole images: of
the chosen order, of all orders with the images and permissions of our kernels, and of all orders without borders of
zeros and with depthwise convolutions in place; and the largest image. Then the least arena in bands, and the bound of
plans that compute whole rows, each once, in any order: with the image outside, and with rows of the image that come one
by one, as from a camera.

Bound of all orders: when a step runs, a set of steps is done that contains all it depends on and none that depends on
it. The bytes in use are those of values that are done and yet to be read, and of the step's result. The least over all
such sets is a minimum cut of a graph of the steps (Elango et al. 2014, "On characterizing the data movement complexity
of computational DAGs"); the largest of these minimums over the steps is below the peak of every order and placement.
"""

import argparse
import re
from collections import deque
from collections.abc import Iterator, Sequence

import cgraph as cg
from benchmarks.micro_networks import PUBLISHED, Published, micro_network
from benchmarks.standalone import from_file
from cgraph.errors import BudgetError
from cgraph.memory.layout import Layout, owner_of
from cgraph.record import Record

MACHINE = "cortex-m7"
ENDLESS = 1 << 40
SHARES = (0.25, 0.5, 0.75)  # rows of each image that are looked at; a bound over some steps is one over all


class Step(Record):
    """A step of a schedule.

    Fields
        name: of its layer
        nbytes: bytes of its result
        reads: numbers of earlier steps
        shared: bytes of operands that its result may overwrite
        room: bytes that only this step needs
    """

    name: str
    nbytes: int
    reads: tuple[int, ...]
    shared: int = 0
    room: int = 0


class Cut:
    """A graph of capacities and its maximum flow from node 0 to node 1, by shortest paths (Dinic). Mutable."""

    def __init__(self, count: int) -> None:
        self.ends, self.left, self.edges = list[int](), list[int](), [list[int]() for _ in range(count)]

    def add(self, start: int, end: int, capacity: int) -> None:
        """Add an edge, and the opposite one with capacity 0."""
        for a, b, most in ((start, end, capacity), (end, start, 0)):
            self.edges[a].append(len(self.ends))
            self.ends.append(b)
            self.left.append(most)

    def levels(self) -> list[int]:
        """Return the distance of each node from node 0 along edges with capacity left; -1 for others."""
        level, waiting = [-1] * len(self.edges), deque([0])
        level[0] = 0
        while waiting:
            at = waiting.popleft()
            for e in self.edges[at]:
                if self.left[e] and level[self.ends[e]] < 0:
                    level[self.ends[e]] = level[at] + 1
                    waiting.append(self.ends[e])
        return level

    def path(self, level: Sequence[int], turn: list[int]) -> list[int]:
        """Return the edges of a shortest path to node 1; empty if there is none. Changes: `turn` skips dead ends."""
        path, at = list[int](), 0
        while at != 1:
            edges = self.edges[at]
            while turn[at] < len(edges) and not self.goes(edges[turn[at]], at, level):
                turn[at] += 1
            if turn[at] < len(edges):
                path.append(edges[turn[at]])
                at = self.ends[path[-1]]
            elif path:
                at = self.ends[path.pop() ^ 1]
                turn[at] += 1
            else:
                return []
        return path

    def goes(self, edge: int, at: int, level: Sequence[int]) -> bool:
        return self.left[edge] > 0 and level[self.ends[edge]] == level[at] + 1

    def maximum(self) -> int:
        """Return the maximum flow, which is the capacity of the minimum cut."""
        total = 0
        while (level := self.levels())[1] >= 0:
            turn = [0] * len(self.edges)
            while path := self.path(level, turn):
                most = min(self.left[e] for e in path)
                for e in path:
                    self.left[e] -= most
                    self.left[e ^ 1] += most
                total += most
        return total


def alive_before(steps: Sequence[Step], at: int) -> int:
    """Return the least bytes of values that are done and yet to be read when a step runs, over all orders."""
    cut = Cut(2 + 2 * len(steps))
    done, kept = (lambda i: 2 + 2 * i), (lambda i: 3 + 2 * i)
    for i, step in enumerate(steps):
        cut.add(done(i), kept(i), step.nbytes)
        for x in step.reads:
            cut.add(kept(x), done(i), ENDLESS)
            cut.add(done(i), done(x), ENDLESS)
    for x in steps[at].reads:
        cut.add(0, done(x), ENDLESS)
    cut.add(done(at), 1, ENDLESS)
    return cut.maximum()


def needed(steps: Sequence[Step], at: int) -> int:
    """Return the least bytes in use while a step runs, over all orders."""
    step = steps[at]
    return alive_before(steps, at) + step.nbytes - min(step.shared, step.nbytes) + step.room


def bound(steps: Sequence[Step], some: Sequence[int]) -> tuple[int, str]:
    """Return the largest of these steps' least bytes, and its layer."""
    return max((needed(steps, at), steps[at].name) for at in some)


# -- steps of whole images ---------------------------------------------------------------------------------------------


def steps_of(layout: Layout) -> list[Step]:
    """Return the steps of a plan, with the bytes and permissions of its kernels."""
    steps = []
    for t, node in enumerate(layout.steps):
        value, room = layout.values[t], layout.workspace_of.get(node)
        owners = (owner_of(layout.views[x]) for x in node.operands)
        reads = tuple(dict.fromkeys(layout.value_of[x] for x in owners if x in layout.value_of))
        shared = max((layout.values[i].nbytes for i in value.overwritable), default=0)
        nbytes = 0 if room is None else layout.values[room].nbytes
        steps.append(Step(f"{node.name} at {node.where}", value.nbytes, reads, shared, nbytes))
    return steps


class Layer(Record):
    """A layer of a published network; layer 0 is the image.

    Fields
        kind: ``image``, ``conv``, ``depthwise`` or ``sum``
        size, channels: of its result
        reads: numbers of earlier layers
    """

    kind: str
    size: int
    channels: int
    reads: tuple[int, ...] = ()
    window: int = 1
    stride: int = 1

    @property
    def nbytes(self) -> int:
        return self.size**2 * self.channels


def layers_of(published: Published) -> list[Layer]:
    """Return the layers up to the mean of all pixels."""
    layers = [Layer("image", published.size, 3)]

    def add(kind: str, channels: int, window: int = 1, stride: int = 1, *others: int) -> None:
        size = -(-layers[-1].size // stride)
        layers.append(Layer(kind, size, channels, (len(layers) - 1, *others), window, stride))

    add("conv", published.stem, 3, 2)
    for expansion, count, stride, window in published.blocks:
        first, before = len(layers) - 1, layers[-1].channels
        if expansion > 1:
            add("conv", before * expansion)
        add("depthwise", before * expansion, window, stride)
        add("conv", count)
        if stride == 1 and before == count:
            add("sum", count, 1, 1, first)
    if published.last:
        add("conv", published.last)
    return layers


def whole_steps(layers: Sequence[Layer]) -> list[Step]:
    """Return a step for each layer: images without borders, sums and depthwise convolutions in place.

    The image is the caller's.
    """
    in_place = ("sum", "depthwise")
    return [
        Step(f"{x.kind} {i}", x.nbytes if i else 0, x.reads, x.nbytes if x.kind in in_place else 0)
        for i, x in enumerate(layers)
    ]


def row_steps(layers: Sequence[Layer], image_nbytes: int) -> tuple[list[Step], list[int]]:
    """Return a step for each row of each layer, and those to look at; the image has rows of `image_nbytes`.

    Rows are whole, without borders, and computed in any order; sums may overwrite a row that they read.
    """
    steps, some, starts = list[Step](), list[int](), list[int]()
    for i, x in enumerate(layers):
        starts.append(len(steps))
        nbytes = x.size * x.channels if i else image_nbytes
        for row in range(x.size):
            reads = tuple(starts[source] + r for source in x.reads for r in rows_read(x, layers[source].size, row))
            steps.append(Step(f"{x.kind} {i}", nbytes, reads, nbytes if x.kind == "sum" else 0))
        some += [starts[i] + int(share * x.size) for share in SHARES] if i else []
    return steps, some


def rows_read(layer: Layer, size: int, row: int) -> Iterator[int]:
    """Yield the rows of an operand of `size` rows that a row reads."""
    before = max((layer.size - 1) * layer.stride + layer.window - size, 0) // 2
    first = row * layer.stride - before
    yield from range(max(first, 0), min(first + layer.window, size))


# -- the table ---------------------------------------------------------------------------------------------------------


def least_budget(name: str) -> int:
    """Return the bytes of the smallest arena."""
    outputs, inputs, updates = from_file(micro_network(name))
    try:
        cg.compile(outputs, inputs, updates, engine=cg.ExportEngine(MACHINE), winograd=False, budget=1)
    except BudgetError as error:
        return int(re.search(r"least budget of this graph is (\d+)", str(error))[1])  # type: ignore[index]
    return 1


def row(name: str) -> str:
    """Return the line of a network."""
    outputs, inputs, updates = from_file(micro_network(name))
    f = cg.compile(outputs, inputs, updates, engine=cg.ExportEngine(MACHINE), winograd=False)
    steps, layers = steps_of(f.compiled.layout), layers_of(PUBLISHED[name])
    ours, where = bound(steps, range(len(steps)))
    whole, layer = bound(whole_steps(layers), range(1, len(layers)))
    by_rows, limit = bound(*row_steps(layers, 0))
    camera, _ = bound(*row_steps(layers, 3 * layers[0].size))
    cells = [f"{f.nbytes:,}", f"{f.compiled.lower_bound:,}", f"{ours:,} ({where})", f"{whole:,} ({layer})"]
    cells.append(f"{max(x.nbytes for x in layers[1:]):,}")
    cells += [f"{least_budget(name):,}", f"{by_rows:,} ({limit})", f"{camera:,}"]
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="Bytes of RAM beside lower bounds")
    parser.add_argument("--networks", default=",".join(PUBLISHED))
    whole = "arena | its order | all orders | in place | largest image"
    print(f"| network | {whole} | least in bands | rows | camera |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name in parser.parse_args().networks.split(","):
        print(row(name), flush=True)


if __name__ == "__main__":
    main()
