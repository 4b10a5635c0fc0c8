"""What a replay checks, as plain data that a test can spoil; and the same check byte by byte, slow and plain."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cgraph.ir.graph import Node
from cgraph.ir.work import Work
from cgraph.kernels.kernel import ARENA, View
from cgraph.memory.layout import is_leaf, owner_of
from cgraph.memory.replay import check_replay
from cgraph.ops.join import Concat
from cgraph.planning.compiled import Compiled


@dataclass(frozen=True)
class Run:
    """The arguments of `check_replay`, and which node's bytes each value shows."""

    steps: tuple[Node, ...]
    views: dict[Node, Any]
    works: dict[Node, Work]
    workspaces: dict[Node, int]
    nbytes: int
    kept: tuple[Node, ...]
    owners: dict[Node, Node]

    def check(self) -> None:
        check_replay(self.steps, self.views, self.works, self.workspaces, self.nbytes, self.kept)

    def moved(self, node: Node, offset: int) -> "Run":
        """The same run with a step's result, and all views of it, at another place; the arena grows if need be."""
        by = offset - first_view(self.views[node]).at.offset
        views = {x: shifted(v, by) if self.owners[x] is node else v for x, v in self.views.items()}
        return replace(self, views=views, nbytes=max(self.nbytes, offset + node.spec.nbytes))

    def with_workspace(self, node: Node, offset: int) -> "Run":
        nbytes = needs(self, node)
        workspaces = {**self.workspaces, node: offset}
        return replace(self, workspaces=workspaces, nbytes=max(self.nbytes, offset + nbytes))


def needs(run: Run, node: Node) -> int:
    """Bytes of a step's workspace."""
    return run.works[node].needs(run.views[node], [run.views[x] for x in node.operands])


def run_of(compiled: Compiled) -> Run:
    """What a compiled graph runs."""
    layout, usage, plan = compiled.layout, compiled.usage, compiled.plan
    workspaces = {node: usage.offset(plan, i) for node, i in layout.workspace_of.items()}
    owners = {node: owner_of(view) for node, view in layout.views.items()}
    kept = (*compiled.outputs, *compiled.sources)
    return Run(layout.steps, compiled.views, layout.works, workspaces, plan.nbytes, kept, owners)


def first_view(view: Any) -> View:
    return view[0] if isinstance(view, tuple) else view


def shifted(view: Any, by: int) -> Any:
    return tuple(v.moved(by) for v in view) if isinstance(view, tuple) else view.moved(by)


def is_sound(run: Run) -> bool:
    """Byte by byte: every byte carries the name of what it holds; concat copies names, other steps make new ones."""
    memory = np.full(run.nbytes, -1, np.int64)
    held: dict[Node, np.ndarray] = {}
    for t, node in enumerate(run.steps):
        sources = [(i, run.owners[x]) for i, x in enumerate(node.operands) if not is_leaf(run.owners[x])]
        if any(not holds(run, memory, held, owner) for _, owner in sources):
            return False
        out, names = bytes_of(run, node), (t << 32) + np.arange(node.spec.nbytes)
        if isinstance(node.op, Concat) and names.size:
            pieces = [names_of(run, memory, k, x) for k, x in enumerate(node.operands)]
            names = np.concatenate(pieces, node.op.axis).reshape(-1)
        changed = out[memory[out] != names]
        permitted = run.works[node].overwrites
        for i, owner in sources:
            exact = i in permitted and np.array_equal(addresses(run.views[node.operands[i]]), out)
            if np.intersect1d(changed, bytes_of(run, owner)).size and not exact:
                return False
        if node in run.workspaces:
            at = run.workspaces[node]
            workspace = np.arange(at, at + needs(run, node))
            if any(np.intersect1d(workspace, bytes_of(run, x)).size for x in (node, *(o for _, o in sources))):
                return False
            memory[workspace] = -1
        memory[out] = names
        held[node] = names
    return all(is_leaf(run.owners[x]) or holds(run, memory, held, run.owners[x]) for x in run.kept)


def holds(run: Run, memory: np.ndarray, held: dict[Node, np.ndarray], owner: Node) -> bool:
    return owner in held and np.array_equal(memory[bytes_of(run, owner)], held[owner])


def bytes_of(run: Run, node: Node) -> np.ndarray:
    at = first_view(run.views[node]).at.offset
    return np.arange(at, at + node.spec.nbytes)


def addresses(view: View) -> np.ndarray:
    """The address of every byte that a view shows, in C order."""
    found = np.full((*view.shape, view.itemsize), view.at.offset) + np.arange(view.itemsize)
    for axis, (n, stride) in enumerate(zip(view.shape, view.strides)):
        found += (np.arange(n) * stride).reshape(-1, *(1,) * (found.ndim - axis - 1))
    return found.reshape(-1)


def names_of(run: Run, memory: np.ndarray, k: int, x: Node) -> np.ndarray:
    """The names of the bytes of a concat's operand ``[*shape, itemsize]``; those of a leaf are made up."""
    view = run.views[x]
    if view.at.base is not ARENA:
        return np.full((*view.shape, view.itemsize), -2 - k)
    return memory[addresses(view)].reshape(*view.shape, view.itemsize)
