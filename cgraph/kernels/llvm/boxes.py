"""Choosing boxes: one after another by falling score, unless one that is chosen covers it."""

from cgraph.kernels.llvm.build import Builder, Ptr, Val


def suppress(k: Builder, dtype: str) -> None:
    """Places of the boxes that stay, at most `most`, and their count. One task.

    Arguments: boxes ``[n, 4]``, scores ``[n]``, order int64 ``[n]``, places int64 ``[most]``, count int64, n, most, the
    largest share that two chosen boxes may have in common, the score that a chosen box must exceed.
    """
    a = k.args(
        boxes=f"{dtype}*", scores=f"{dtype}*", order="i8*", places="i8*", count="i8*",
        n="i8", most="i8", share="f8", least="f8",
    )  # fmt: skip
    share, least = k.cast(a.share, dtype), k.cast(a.least, dtype)
    chosen = k.slot(0, "i8")
    with k.loop(0, a.n) as i:
        place = a.order.load(i)
        with k.if_((a.scores.load(place) > least) & (chosen.value < a.most)):
            covered = k.slot(0, "i8")
            with k.loop(0, chosen.value) as j:
                common = overlap(k, a.boxes + place * 4, a.boxes + a.places.load(j) * 4)
                covered.value = covered.value | k.cast(common > share, "i8")
            with k.if_(covered.value == 0):
                a.places.store(place, chosen.value)
                chosen.value = chosen.value + 1
    with k.loop(chosen.value, a.most) as j:
        a.places.store(-1, j)
    a.count.store(chosen.value)


def overlap(k: Builder, x: Ptr, y: Ptr) -> Val:
    """The area that two boxes share over the area that they cover together; corners in either order of axes."""
    one, other = [x.load(i) for i in range(4)], [y.load(i) for i in range(4)]
    sides = [
        k.larger(k.smaller(one[i + 2], other[i + 2]) - k.larger(one[i], other[i]), k.const(0, x.dtype)) for i in (0, 1)
    ]
    inside = sides[0] * sides[1]
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    return inside / (areas[0] + areas[1] - inside)
