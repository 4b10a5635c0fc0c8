"""Non-maximum suppression, one block of threads for an image: all threads compare a box with the selected ones."""

from cgraph.kernels.boxes.emit import arrays_of, overlap
from cgraph.kernels.llvm.gpu_build import GpuBuilder, block
from cgraph.kernels.team.gpu_emit import BlockTeam
from cgraph.kernels.team.gpu_signature import THREADS


@block(THREADS)
def suppress(k: GpuBuilder, dtype: str, grouped: bool, lanes: int) -> None:
    """Emit `cgraph.kernels.boxes.emit.suppress` for a block; `lanes` is 0: a thread compares one box."""
    a, own, picture = k.args(), BlockTeam(k, THREADS), k.block()
    share, least = k.cast(a.share, dtype), k.cast(a.least, dtype)
    boxes, places, scores, order, groups = arrays_of(k, a, picture)
    count = k.slot(0, "i8")
    with k.loop(0, a.n) as i:
        place = order.load(i)
        with k.if_((scores.load(place) > least) & (count.value < a.most)):
            covered = k.slot(0, "i4")
            with k.loop(own.lane, count.value, own.size) as j:
                other = places.load(j)
                inside, union = overlap(
                    k, *([(boxes + at * 4).load(side) for side in range(4)] for at in (place, other))
                )
                hidden = inside / union > share
                if grouped:
                    hidden = hidden & (groups.load(place) == groups.load(other))
                covered.value = covered.value | k.cast(hidden, "i4")
            (any_covers,) = own.joined([covered.value], lambda x, y: [x[0] | y[0]])
            with k.if_(any_covers == 0):
                with k.if_(own.lane == 0):
                    places.store(place, count.value)
                count.value = count.value + 1
            k.barrier()
    with k.loop(count.value + own.lane, a.most, own.size) as j:
        places.store(-1, j)
    with k.if_(own.lane == 0):
        a.counts.store(count.value, picture)
