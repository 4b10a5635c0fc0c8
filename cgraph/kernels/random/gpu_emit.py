"""Random numbers by Philox, with the bits of `cgraph.kernels.random.emit`: a thread takes the role of a lane."""

from cgraph.kernels.llvm.gpu_build import GpuBuilder, block
from cgraph.kernels.philox import LANES
from cgraph.kernels.random.emit import VALUES, words
from cgraph.kernels.team.gpu_signature import ELEMENTS


@block(ELEMENTS)
def fill(k: GpuBuilder, kind: str, dtype: str) -> None:
    a, own = k.args(), k.task()
    key, out = (a.key.load(0), a.key.load(1)), k.pointer(a.out, dtype)
    values = VALUES[kind](k, words(k, key, k.cast(own, "u8")), dtype, a.probability)
    first = own // LANES * (LANES * len(values)) + own % LANES
    for place, value in enumerate(values):
        with k.if_(first + place * LANES < a.count):
            out.store(value, first + place * LANES)
