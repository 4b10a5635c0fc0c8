"""Non-maximum suppression: selects boxes by falling score unless a selected box covers them."""

from types import SimpleNamespace

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Ptr, Val


def suppress(k: Builder, dtype: str, grouped: bool) -> None:
    """Emit the indices of the boxes that stay, at most `most`, and their count. Task: one image."""
    a = k.args()
    share, least = k.cast(a.share, dtype), k.cast(a.least, dtype)
    with k.task_loop() as picture:
        boxes, places, scores, order, groups = arrays_of(k, a, picture)
        count = k.slot(0, "i8")
        with k.loop(0, a.n) as i:
            place = order.load(i)
            with k.if_((scores.load(place) > least) & (count.value < a.most)):
                covered, j = k.slot(0, "b1"), k.slot(0, "i8")
                with k.loop_while() as w:
                    w.until(covered.value | (j.value >= count.value))
                    other = places.load(j.value)
                    inside, union = overlap(k, boxes + place * 4, boxes + other * 4)
                    meets = (inside > 0) | (share < 0)  # most boxes do not, and a division takes longer
                    if grouped:
                        meets = meets & (groups.load(place) == groups.load(other))
                    with k.if_(meets):
                        covered.value = inside / union > share
                    j.value = j.value + 1
                with k.if_(~covered.value):
                    places.store(place, count.value)
                    count.value = count.value + 1
        with k.loop(count.value, a.most) as i:
            places.store(-1, i)
        a.counts.store(count.value, picture)


def arrays_of(k: Builder, a: SimpleNamespace, picture: Val) -> tuple[Ptr, Ptr, Ptr, Ptr, Ptr]:
    """Return the addresses of an image's boxes, selected indices, scores, order and groups."""
    boxes, places = a.boxes + picture * a.n * 4, a.places + picture * a.most
    scores, order = (x + picture * a.n for x in (a.scores, a.order))
    return boxes, places, scores, order, k.pointer(a.groups, "i8") + picture * a.n


def overlap(k: Builder, x: Ptr, y: Ptr) -> tuple[Val, Val]:
    """Return the areas of intersection and union of two boxes; corners in either order of axes."""
    one, other = [x.load(i) for i in range(4)], [y.load(i) for i in range(4)]
    sides = [
        k.larger(k.smaller(one[i + 2], other[i + 2]) - k.larger(one[i], other[i]), k.const(0, x.dtype)) for i in (0, 1)
    ]
    inside = sides[0] * sides[1]
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    return inside, areas[0] + areas[1] - inside
