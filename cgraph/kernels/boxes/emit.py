"""Non-maximum suppression: selects boxes by falling score unless a selected box covers them."""

from types import SimpleNamespace

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.llvm.vfloat import any_lane


def suppress(k: Builder, dtype: str, grouped: bool, lanes: int) -> None:
    """Emit the indices of the boxes that stay, at most `most`, and their count. Task: one image.

    `lanes` selected boxes are compared at once; behind the last one are corners of NaN, which cover nothing.
    """
    a = k.args()
    share, least = k.cast(a.share, dtype), k.cast(a.least, dtype)
    with k.task_loop() as picture:
        boxes, places, scores, order, groups = arrays_of(k, a, picture)
        corners = k.pointer(a.corners, dtype) + picture * a.room * 4
        labels = k.pointer(a.labels, "i8") + picture * a.room
        with k.loop(0, a.room * 4) as i:
            corners.store(k.const(float("nan"), dtype), i)
        count = k.slot(0, "i8")
        with k.loop(0, a.n) as i:
            place = order.load(i)
            with k.if_((scores.load(place) > least) & (count.value < a.most)):
                box = [(boxes + place * 4).load(side) for side in range(4)]
                covered, j = k.slot(0, "b1"), k.slot(0, "i8")
                with k.loop_while() as w:
                    w.until(covered.value | (j.value >= count.value))
                    others = [corners.load(j.value + a.room * side, lanes) for side in range(4)]
                    inside, union = overlap(k, [k.splat(x, lanes) if lanes else x for x in box], others)
                    meets = (inside > 0) | k.splat(share < 0, lanes) if lanes else (inside > 0) | (share < 0)
                    if grouped:
                        meets = meets & (labels.load(j.value, lanes) == groups.load(place))
                    with k.if_(any_lane(k, meets)):  # most boxes do not, and a division takes longer
                        covered.value = any_lane(k, meets & (inside / union > share))
                    j.value = j.value + max(lanes, 1)
                with k.if_(~covered.value):
                    places.store(place, count.value)
                    for side, x in enumerate(box):
                        corners.store(x, count.value + a.room * side)
                    if grouped:
                        labels.store(groups.load(place), count.value)
                    count.value = count.value + 1
        with k.loop(count.value, a.most) as i:
            places.store(-1, i)
        a.counts.store(count.value, picture)


def arrays_of(k: Builder, a: SimpleNamespace, picture: Val) -> tuple[Ptr, Ptr, Ptr, Ptr, Ptr]:
    """Return the addresses of an image's boxes, selected indices, scores, order and groups."""
    boxes, places = a.boxes + picture * a.n * 4, a.places + picture * a.most
    scores, order = (x + picture * a.n for x in (a.scores, a.order))
    return boxes, places, scores, order, k.pointer(a.groups, "i8") + picture * a.n


def overlap(k: Builder, one: list[Val], other: list[Val]) -> tuple[Val, Val]:
    """Return the areas of intersection and union of two boxes of four corners, in either order of axes."""
    zero = k.const(0, one[0].dtype, one[0].lanes)
    sides = [k.larger(k.smaller(one[i + 2], other[i + 2]) - k.larger(one[i], other[i]), zero) for i in (0, 1)]
    inside = sides[0] * sides[1]
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    return inside, areas[0] + areas[1] - inside
