"""Fusion of pointwise ops with the pad or set slice that copies their result into a larger array."""

from collections import Counter
from functools import partial

from cgraph.ir.graph import Node, apply
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.ir.work import Work
from cgraph.kernels.target import Target
from cgraph.memory.layout import NodeFacts, is_leaf, owner_of
from cgraph.ops.family import Pointwise
from cgraph.ops.pad import Pad
from cgraph.ops.physical.stencil import PAGE, Stencil
from cgraph.ops.slicing import SetSlice, Slice
from cgraph.passes.loop_bodies import in_bodies
from cgraph.passes.update_in_place import readers_of

StencilJoin = tuple[Stencil, tuple[Node, ...], Work]


def fuse_stencils(outputs: tuple[Node, ...], target: Target) -> tuple[Node, ...]:
    """Move a pointwise op that only a pad or set slice reads into it: same bits, one pass over memory instead of two.

    Slices of arrays like the result become windows of the op, which may overwrite the array that it reads around each
    element. Needs at most a page more bytes. Not joined: a set slice with steps; an op that reads the bytes of such an
    array in another way too, so that it could not overwrite them.
    """
    graph = in_bodies(outputs, partial(fuse_stencils, target=target))
    larger = [node for node in graph.order if isinstance(node.op, Pad | SetSlice)] if graph.has(Pad, SetSlice) else []
    stencils = {node: join_stencil(node, target) for node in larger if has_inner(node, graph)}
    if not stencils:
        return graph
    views = NodeFacts(target).views_of(graph.order)
    owners = {node: owner_of(views[node]) for node in graph.order}
    readers, shown = readers_of(graph.order, views), {owners[x] for x in graph}

    def pays(node: Node) -> bool:
        """Return True if the op needs at most a page more bytes than the pad or set slice after the inner op."""
        inner, (_, sources, work) = node.operands[-1], stencils[node]
        overwritten = {owners[sources[i]] for i in work.overwrites}
        read = {x for x in (owners[s] for s in sources) if x not in shown and not is_leaf(x)}
        dying = {x for x in read if {inner, node}.issuperset(readers[x])}
        needed = sum(x.nbytes for x in dying) + work.nbytes + (node.nbytes if overwritten.isdisjoint(dying) else 0)
        return needed <= inner.nbytes + node.nbytes + PAGE

    def change(node: Node, new: New) -> Node | None:
        if not (node in stencils and may_overwrite(node, stencils[node], owners) and pays(node)):
            return None
        op, sources, _ = stencils[node]
        return apply(op, *(new[x] for x in sources))

    return rebuild(graph, change)


def has_inner(node: Node, graph: Roots) -> bool:
    """Return True if the node puts a pointwise result that no other node reads into a larger array."""
    if isinstance(node.op, SetSlice) and set(node.op.steps) != {1}:
        return False
    inner = node.operands[-1]
    return isinstance(inner.op, Pointwise) and graph.is_inner(inner) and inner not in set(node.operands[:-1])


def join_stencil(node: Node, target: Target) -> StencilJoin:
    """Return the op that computes both, its operands, and the target's work for it."""
    inner, op = node.operands[-1], node.op
    assert isinstance(inner.op, Pointwise) and isinstance(op, Pad | SetSlice)
    sources = {x: i for i, x in enumerate(node.operands[:-1])}
    windows: list[tuple[int, Slice]] = []
    for y in inner.operands:
        x, window = y, Slice((0,) * y.ndim, (1,) * y.ndim, y.shape)
        if isinstance(y.op, Slice) and y.operands[0].spec == node.spec:
            x, window = y.operands[0], y.op
        windows.append((sources.setdefault(x, len(sources)), window))
    border = op.value if isinstance(op, Pad) else None
    stencil = Stencil(inner.op, tuple(windows), op.place(inner.spec), node.shape, border)
    return stencil, tuple(sources), stencil.work(target, *(x.spec for x in sources))


def may_overwrite(node: Node, stencil: StencilJoin, owners: dict[Node, Node]) -> bool:
    """Return True if the op may overwrite every array like the result, as the pad or set slice could."""
    op, sources, work = stencil
    alike = range(1) if op.border is None else [i for i, x in enumerate(sources) if x.spec == node.spec]
    reads = Counter(owners[x] for x in sources)
    return all(i in work.overwrites and reads[owners[sources[i]]] == 1 for i in alike)
