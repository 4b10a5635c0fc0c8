"""Calls that fill a view with random numbers; `cgraph.kernels.philox` defines them."""

from cgraph.kernels.kernel import Call, View
from cgraph.kernels.random.signature import FILL
from cgraph.kernels.target import Target
from cgraph.kernels.views.layout import TASK_ELEMENTS
from cgraph.kernels.views.thread_blocks import in_blocks
from cgraph.late import LateModule

gpu_random = LateModule("cgraph.kernels.random.gpu_calls")

DTYPES = {"bits": ("u4", "u8"), "uniform": ("f4", "f8"), "normal": ("f4", "f8"), "bernoulli": ("b1",)}


def random_calls(target: Target, kind: str, out: View, key: View, probability: float = 0.0) -> list[Call]:
    """Fill `out` (contiguous) with ``bits``, ``uniform``, ``normal`` or ``bernoulli`` values.

    An element depends only on its position in C order and on `key`, two uint32 or one uint64 in memory.

    Raises
        ValueError: an unsupported kind, dtype or layout
    """
    if out.dtype not in DTYPES.get(kind, ()):
        raise ValueError(f"there are no random {kind!r} values of {out.dtype}. Choose among {DTYPES}")
    if not out.is_contiguous or not key.is_contiguous or key.size * key.itemsize != 8:
        raise ValueError(
            f"random numbers need a contiguous view and a key of 8 bytes, not strides {out.strides} of {out.shape} and "
            f"a key of {key.size * key.itemsize} bytes"
        )
    if out.size == 0:
        return []
    group = 32 if out.itemsize == 8 else 64
    blocks = in_blocks(target, gpu_random.random_calls, kind, out, key, probability, group)
    if blocks is not None:
        return blocks
    each = max(1, TASK_ELEMENTS // (2 * group))
    groups = -(-out.size // group)
    call = FILL.call(
        (kind, out.dtype), -(-groups // each),
        count=out.size, each=each, key=key.at, out=out.at, probability=float(probability),
    )  # fmt: skip
    return [call]
