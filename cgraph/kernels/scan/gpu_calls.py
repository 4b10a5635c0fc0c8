"""Calls of cumulative sums and similar scans in blocks of a GPU's threads."""

from cgraph.kernels.kernel import Call, View
from cgraph.kernels.scan.gpu_signature import ACROSS, ALONG, THREADS
from cgraph.kernels.team.gpu_calls import extents, fits, lies_along, table

MANY_LINES = 4096  # threads of their own keep a GPU at work


def scan_calls(out: View, x: View, steps: tuple[int, int], n: int, how: str) -> list[Call] | None:
    """`out`, `x`: the first elements of all lines; `steps`: bytes along them. None where walks are long."""
    if not fits(out):
        return None
    across = lies_along(x) and lies_along(out) and x.size >= MANY_LINES
    call = (ACROSS if across else ALONG).call(
        (out.dtype, how, len(extents(out))), -(-x.size // THREADS) if across else x.size,
        lines=x.size, n=n, out=out.at, out_n=steps[0], x=x.at, x_n=steps[1], axes=table((out, x)),
    )  # fmt: skip
    return [call]
