"""cut_patches: patch-based execution of the steps around the memory peak.

Borders of patches are computed twice. Regions and patches are those of Cipolletta and Calimera 2021
(`cgraph.budget.patches.tile_peak`). Each op of a region is applied to the part of its operands that a patch needs, with
the remaining padding; the patches of a join are concatenated. Keeps the values, up to rounding where a kernel computes
a patch in other tiles. Increases the number of operations. Runs before all other passes, which see ordinary
convolutions of small images.
"""

from collections.abc import Sequence

from cgraph.budget.patches.image_steps import ImageStep, steps_and_places
from cgraph.budget.patches.tile_peak import (
    Area,
    check_patches,
    critical_regions,
    grid_of,
    joins_of,
    patch_of,
    patches_of,
    read_area,
    touching,
)
from cgraph.ir.graph import Node, apply
from cgraph.ir.origin import keeps_origin
from cgraph.ir.rewrite import with_new_operands
from cgraph.ir.traverse import at_origins, post_order
from cgraph.kernels.views.window import Window
from cgraph.ops.conv import Conv2d
from cgraph.ops.family import Pointwise
from cgraph.ops.join import Concat
from cgraph.ops.leaf import Var
from cgraph.ops.pool import Pool
from cgraph.ops.shape import BroadcastTo, Reshape
from cgraph.ops.slicing import Slice
from cgraph.record import replace

ROWS, COLUMNS = 2, 3  # axes of images


@keeps_origin
def cut_patches(
    outputs: tuple[Node, ...], inputs: Sequence[Var], alpha: float, slices: tuple[int, int]
) -> tuple[Node, ...]:
    """Return the graph with the regions around its peak in patches.

    Parameters
        inputs: the Function's inputs, images among them
        alpha: regions reach as far as this share of the peak is alive, 0 to 1
        slices: patches down and across; fewer where a join has fewer rows or columns
    Raises
        PlanError: alpha is not a share, or there are no patches
    """
    check_patches(alpha, slices)
    steps, place = steps_and_places(outputs, inputs)
    patches = _Patches(steps, place)
    joins = {
        patches.chains[i][-1]: (region, i) for region in critical_regions(steps, alpha) for i in joins_of(steps, region)
    }
    for node in at_origins(post_order(outputs)):
        if node in joins:
            patches.new[node] = patches.joined(*joins[node], slices)
        else:
            patches.new[node] = with_new_operands(node, tuple(patches.new[x] for x in node.operands))
    return tuple(patches.new[x] for x in outputs)


class _Patches:
    """The new nodes of a graph, whole and in patches. Changes: grows.

    Fields
        chains: for each step its nodes that are images; each reads the one before
        new: the new node of each node
        made: for each step and patch, the new node of the last of its chain
    """

    def __init__(self, steps: Sequence[ImageStep], place: dict[Node, int]) -> None:
        self.steps, self.place = steps, place
        self.chains: list[list[Node]] = [[] for _ in steps]
        ended: set[int] = set()
        for node, i in place.items():
            if isinstance(node.op, Reshape):
                ended.add(i)
            if i not in ended:
                self.chains[i].append(node)
        self.new: dict[Node, Node] = {}
        self.patches: dict[tuple[int, int], Node] = {}

    def joined(self, region: tuple[int, ...], join: int, slices: tuple[int, int]) -> Node:
        """Return the result of a join, concatenated from its patches."""
        grid = grid_of(self.steps, joins_of(self.steps, region), slices)
        steps = self.steps_of(region, join)
        pieces = []
        for patch, areas in enumerate(patches_of(self.steps, region, slices)):
            for i in steps:
                if (i, patch) not in self.patches:
                    self.patches[i, patch] = self.patch(i, patch, areas)
            own = patch_of(self.steps[join], grid, patch)  # a step of the region may need more of this join
            pieces.append(crop(self.patches[join, patch], within(own, areas[join])))
        rows = [concat(pieces[k : k + grid[1]], COLUMNS) for k in range(0, len(pieces), grid[1])]
        return concat(rows, ROWS)

    def steps_of(self, region: tuple[int, ...], join: int) -> list[int]:
        """Return the steps of a region that a join needs, operands before users."""
        needed = {join}
        for i in sorted(region, reverse=True):
            if i in needed:
                needed.update(x for x in self.steps[i].operands if x in region)
        return sorted(needed)

    def patch(self, i: int, patch: int, areas: dict[int, Area]) -> Node:
        """Return the nodes of a step for the pixels of a patch."""
        step, area = self.steps[i], areas[i]
        nodes: dict[Node, Node] = {}
        for node in self.chains[i]:
            operands = (nodes[x] if x in nodes else self.read(x, node, step, patch, areas) for x in node.operands)
            nodes[node] = over_patch(node, step, area, tuple(operands))
        return nodes[self.chains[i][-1]]

    def read(self, x: Node, node: Node, step: ImageStep, patch: int, areas: dict[int, Area]) -> Node:
        """Return the part of an operand that a patch of `node` reads: a part of an image, any other value whole."""
        own = areas[self.place[node]]
        if x not in self.place:
            return crop(self.new[x], own) if isinstance(node.op, Pointwise) else self.new[x]
        i = self.place[x]
        area = read_area(step, own, self.steps[i].shape)
        if (i, patch) not in self.patches or x is not self.chains[i][-1]:
            return crop(self.new[x], area)
        return crop(self.patches[i, patch], within(area, areas[i]))


def over_patch(node: Node, step: ImageStep, area: Area, operands: tuple[Node, ...]) -> Node:
    """Return this part of a node's result, computed from the pixels that it reads."""
    if not isinstance(node.op, Conv2d | Pool):
        return apply(node.op, *operands)
    shape = node.operands[0].shape
    above, (top, bottom) = padding(area[0], area[1], shape[ROWS], step.window, 0)
    ahead, (left, right) = padding(area[2], area[3], shape[COLUMNS], step.window, 1)
    op = replace(node.op, pad=(top, left, bottom, right))
    out = apply(replace(op, ceil=False) if isinstance(op, Pool) else op, *operands)
    return crop(out, (above, above + area[1] - area[0], ahead, ahead + area[3] - area[2]))


def padding(first: int, stop: int, length: int, window: Window, axis: int) -> tuple[int, tuple[int, int]]:
    """Return the number of extra results before `first` along an axis (0 down, 1 across) of `length` pixels, and the
    padding before and after the pixels that results read, including the padding that a pool's ``ceil`` adds.
    """
    stride, extent, before = window.stride[axis], window.extent[axis], window.pad[axis]
    begin, end = touching(first, stop, stride, before, extent, length)
    behind = (end - 1) * stride - before + extent - length
    return first - begin, (max(before - begin * stride, 0), max(behind, 0))


def within(area: Area, outer: Area) -> Area:
    """Return an area by its place in another one that contains it."""
    top, _, left, _ = outer
    return area[0] - top, area[1] - top, area[2] - left, area[3] - left


def crop(x: Node, area: Area) -> Node:
    """Cut rows and columns out of images; first repeat a value that has one element for each image."""
    top, stop, left, end = area
    lengths = (*x.shape[:ROWS], stop - top, end - left)
    if lengths == x.shape:
        return x
    if isinstance(x.op, BroadcastTo) and all(n == 1 for n in x.operands[0].shape[-2:]):
        return apply(BroadcastTo(lengths), x.operands[0])
    return apply(Slice((0, 0, top, left), (1,) * 4, lengths), x)


def concat(parts: Sequence[Node], axis: int) -> Node:
    return apply(Concat(axis), *parts) if len(parts) > 1 else parts[0]
