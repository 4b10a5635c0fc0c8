"""restructure: cut the steps around the memory peak into patches of pixels that are computed one after another.

Idea: a *region* of steps around the peak is computed patch by patch. A patch of the region's results needs a patch of
each tensor inside, with a border that neighbouring patches compute again. So one patch of each inner tensor exists at a
time, while the tensors that the region reads from outside (its forks) and its results (its joins) exist whole.

Source: Cipolletta and Calimera, DATE 2021, doi:10.23919/DATE51398.2021.9473965, algorithm 1. The text leaves the
following open; these rules give all 20 figures of its tables II and III to the printed digits:
- steps run in reversed post-order of a walk from the input, which visits users in the order of their creation;
- the input counts, a concat copies, a value is alive from its own step to its last reader;
- the region begins with the splittable steps at the peak. It grows to operands alive, then to users whose operands are
  all inside, at some step with at least `alpha` of the peak; it is closed so that no path leaves it and comes back;
- joins are cut as `numpy.array_split` does; each patch is copied out of its forks, and one concat joins the patches.
One figure depends on the network: MobileNetV2's 60.5 % comes with TensorFlow's padding; PyTorch's gives 61.1 %.
Time O(patches × steps); only lifetimes are simulated.
"""

from collections.abc import Sequence

from cgraph.budget.patches.image_steps import ImageStep
from cgraph.errors import PlanError
from cgraph.ir.traverse import post_order_of
from cgraph.memory.bounds import breadths_at, lower_bound
from cgraph.memory.problem import Problem, ProblemOperand, UsageInterval
from cgraph.record import Record

Area = tuple[int, int, int, int]  # rows first..stop, columns first..stop; ends excluded
ALPHAS = tuple(i / 10 for i in range(1, 10))
SLICES = tuple((h, w) for h in (2, 3, 4) for w in (2, 3, 4))


class Restructured(Record):
    """A network after restructuring.

    Fields
        problem: its usage records, in elements
        work: number of operations
        regions: the steps of each region, in rising order
    """

    problem: Problem
    work: int
    regions: tuple[tuple[int, ...], ...]

    @property
    def peak(self) -> int:
        """Maximum number of elements alive at once."""
        return lower_bound(self.problem)


def as_written(steps: Sequence[ImageStep]) -> Restructured:
    """Return the network without regions."""
    order = walk_order(steps)
    records = Records()
    for i in order:
        records.add(i, steps[i].size, steps[i].operands)
    return Restructured(records.problem(), sum(x.work * x.size for x in steps), ())


def restructure(steps: Sequence[ImageStep], alpha: float, slices: tuple[int, int]) -> Restructured:
    """Return the network with the regions around its peak computed in ``rows × columns`` patches.

    Parameters
        steps: operands before users
        alpha: regions reach as far as this share of the peak is alive, 0 to 1
        slices: patches down and across; fewer where a join has fewer rows or columns
    Raises
        PlanError: alpha is not a share, or there are no patches
    """
    check_patches(alpha, slices)
    regions = critical_regions(steps, alpha)
    region_of = {i: region for region in regions for i in region}
    records, work = Records(), 0
    for i in contract_regions(steps, regions):
        if i in region_of:
            work += add_patches(records, steps, region_of[i], slices)
        else:
            records.add(i, steps[i].size, steps[i].operands)
            work += steps[i].work * steps[i].size
    return Restructured(records.problem(), work, tuple(regions))


def check_patches(alpha: float, slices: tuple[int, int]) -> None:
    """Raise PlanError if alpha is not a share or there are no patches."""
    if not 0 <= alpha <= 1 or min(slices) < 1:
        raise PlanError(
            f"alpha is {alpha} and slices are {slices}. Pass a share of the peak from 0 to 1 and two counts >= 1"
        )


class Records:
    """Usage records in running order. Changes: grows."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.last: list[int] = []
        self.of: dict[object, int] = {}

    def add(self, key: object, size: int, reads: Sequence[object]) -> None:
        """Add a step with a result of `size` elements, which later steps refer to by `key`."""
        now = len(self.sizes)
        for x in reads:
            self.last[self.of[x]] = now
        self.of[key] = now
        self.sizes.append(size)
        self.last.append(now)

    def problem(self) -> Problem:
        rows = zip(self.sizes, self.last)
        return Problem(tuple(ProblemOperand(size, UsageInterval(i, last)) for i, (size, last) in enumerate(rows)), 1)


# -- choice of the steps
# -------------------------------------------------------------------------------------------------


def critical_regions(steps: Sequence[ImageStep], alpha: float) -> list[tuple[int, ...]]:
    """Return the connected sets of steps to compute in patches, except sets with a step in between that cannot be
    cut.
    """
    order = walk_order(steps)
    at = {x: t for t, x in enumerate(order)}
    problem = as_written(steps).problem
    breadths = breadths_at(problem, problem.starts).tolist()
    last = [problem.operands[at[i]].interval.last for i in range(len(steps))]
    peak = max(breadths, default=0)

    def grows(i: int, first: int, stop: int) -> bool:
        return i not in members and steps[i].splits and max(breadths[first : stop + 1]) >= alpha * peak

    members = {i for i, step in enumerate(steps) if step.splits and breadths[at[i]] == peak}
    waiting = sorted(members)
    while waiting:
        for x in steps[waiting.pop()].operands:
            if grows(x, at[x], last[x]):
                members.add(x)
                waiting.append(x)
    for i, step in enumerate(steps):  # one pass is enough, since operands come before users
        if step.operands and members.issuperset(step.operands) and grows(i, min(at[x] for x in step.operands), at[i]):
            members.add(i)
    return [x for x in connected_sets(steps, members | between(steps, members)) if all(steps[i].splits for i in x)]


def between(steps: Sequence[ImageStep], members: set[int]) -> set[int]:
    """Return the steps that depend on one of these and that one of these depends on."""
    below: set[int] = set()
    for i, step in enumerate(steps):
        if any(x in members or x in below for x in step.operands):
            below.add(i)
    above: set[int] = set()
    for i in range(len(steps) - 1, -1, -1):
        if i in members or i in above:
            above.update(steps[i].operands)
    return below & above


def connected_sets(steps: Sequence[ImageStep], members: set[int]) -> list[tuple[int, ...]]:
    """Return the sets of steps that read one another, each in rising order, by their first step."""
    users = users_of([step.operands for step in steps])
    left, regions = set(members), []
    while left:
        waiting = [min(left)]
        left.remove(waiting[0])
        region = list(waiting)
        while waiting:
            i = waiting.pop()
            near = left.intersection((*steps[i].operands, *users[i]))
            left -= near
            region += near
            waiting += near
        regions.append(tuple(sorted(region)))
    return regions


# -- running order
# -------------------------------------------------------------------------------------------------------


def walk_order(steps: Sequence[ImageStep]) -> list[int]:
    """Return the reversed post-order of a walk along users: the last branch of a fork runs first."""
    return walk([step.operands for step in steps])


def walk(operands: Sequence[Sequence[int]]) -> list[int]:
    """Return such an order for any positions."""
    return list(post_order_of(users_of(operands), [i for i, reads in enumerate(operands) if not reads]))[::-1]


def contract_regions(steps: Sequence[ImageStep], regions: Sequence[tuple[int, ...]]) -> list[int]:
    """Return an order of the steps in which every region is one step, named by its first."""
    named = {i: region[0] for region in regions for i in region}
    names = sorted({named.get(i, i) for i in range(len(steps))})
    place = {x: k for k, x in enumerate(names)}
    operands: list[list[int]] = [[] for _ in names]
    for i, step in enumerate(steps):
        own = place[named.get(i, i)]
        operands[own] += [p for p in (place[named.get(x, x)] for x in step.operands) if p != own]
    return [names[k] for k in walk(operands)]


def users_of(operands: Sequence[Sequence[int]]) -> list[list[int]]:
    users: list[list[int]] = [[] for _ in operands]
    for i, reads in enumerate(operands):
        for x in dict.fromkeys(reads):
            users[x].append(i)
    return users


# -- patches -----------------------------------------------------------------------------------------------------------


def add_patches(records: Records, steps: Sequence[ImageStep], region: tuple[int, ...], slices: tuple[int, int]) -> int:
    """Record the steps of a region patch by patch; return the number of operations."""
    order = [i for i in walk_order(steps) if i in set(region)]
    patches = patches_of(steps, region, slices)
    work = 0
    for patch, areas in enumerate(patches):
        for i in order:
            for x in steps[i].operands:
                if x not in region and (x, patch) not in records.of:
                    records.add((x, patch), steps[x].shape[0] * pixels(areas[x]), (x,))
            size = steps[i].shape[0] * pixels(areas[i])
            records.add((i, patch), size, [(x, patch) for x in steps[i].operands])
            work += steps[i].work * size
    for i in joins_of(steps, region):
        records.add(i, steps[i].size, [(i, patch) for patch in range(len(patches))])
    return work


def patches_of(steps: Sequence[ImageStep], region: tuple[int, ...], slices: tuple[int, int]) -> list[dict[int, Area]]:
    """Return, for each patch row by row, the pixels of every step of a region that it computes, and those of forks that
    it reads.
    """
    order = [i for i in walk_order(steps) if i in set(region)]
    joins = joins_of(steps, region)
    grid = grid_of(steps, joins, slices)
    return [needed(steps, order, {i: patch_of(steps[i], grid, k) for i in joins}) for k in range(grid[0] * grid[1])]


def grid_of(steps: Sequence[ImageStep], joins: Sequence[int], slices: tuple[int, int]) -> tuple[int, int]:
    """Return the patches down and across: the numbers requested, or as many as every join has rows and columns."""
    rows, columns = (min(n, *(steps[i].shape[axis] for i in joins)) for n, axis in zip(slices, (1, 2)))
    return rows, columns


def joins_of(steps: Sequence[ImageStep], region: tuple[int, ...]) -> list[int]:
    """Return the steps whose results are read outside the region, or by no step."""
    users = users_of([step.operands for step in steps])
    return [i for i in region if not users[i] or not set(region).issuperset(users[i])]


def patch_of(step: ImageStep, slices: tuple[int, int], patch: int) -> Area:
    """Return the part of a result that is one patch; patches count row by row."""
    row, column = divmod(patch, slices[1])
    return (*share(step.shape[1], slices[0], row), *share(step.shape[2], slices[1], column))


def share(length: int, parts: int, i: int) -> tuple[int, int]:
    """Return part i of an axis as `numpy.array_split` cuts it."""
    each, more = divmod(length, parts)
    first = i * each + min(i, more)
    return first, first + each + (i < more)


def needed(steps: Sequence[ImageStep], order: Sequence[int], areas: dict[int, Area]) -> dict[int, Area]:
    """Return the pixels of every tensor that these pixels of the joins need, forks included."""
    reads: dict[int, Area] = dict(areas)
    for i in reversed(order):
        for x in steps[i].operands:
            area = read_area(steps[i], reads[i], steps[x].shape)
            reads[x] = area if x not in reads else united(reads[x], area)
    return reads


def read_area(step: ImageStep, area: Area, shape: tuple[int, int, int]) -> Area:
    """Return the pixels, inside the operand, that a step reads for these pixels of its result."""
    window = step.window
    top, stop = read_range(area[0], area[1], window.stride[0], window.pad[0], window.extent[0], shape[1])
    left, end = read_range(area[2], area[3], window.stride[1], window.pad[1], window.extent[1], shape[2])
    return top, stop, left, end


def read_range(first: int, stop: int, stride: int, before: int, extent: int, length: int) -> tuple[int, int]:
    first, stop = touching(first, stop, stride, before, extent, length)
    return max(first * stride - before, 0), min((stop - 1) * stride - before + extent, length)


def touching(first: int, stop: int, stride: int, before: int, extent: int, length: int) -> tuple[int, int]:
    """Return these results, extended to the next one that sees a pixel where they see padding only."""
    highest, lowest = (length + before - 1) // stride, max((before - extent) // stride + 1, 0)
    return min(first, highest), max(stop, lowest + 1)


def united(one: Area, other: Area) -> Area:
    (a, b, c, d), (e, f, g, h) = one, other
    return min(a, e), max(b, f), min(c, g), max(d, h)


def pixels(area: Area) -> int:
    return (area[1] - area[0]) * (area[3] - area[2])
