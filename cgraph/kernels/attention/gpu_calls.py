"""Calls of attention in blocks of threads."""

from typing import Any

from cgraph.kernels.attention.gpu_signature import BAND, DEPTHS, ROWS
from cgraph.kernels.families import signature_of
from cgraph.kernels.kernel import Call, Kernel
from cgraph.record import replace


def attention_calls(call: Call, batch: int) -> list[Call] | None:
    """Blocks in the place of a call of `attention.bands`; None for more columns than one has room for."""
    assert isinstance(call.kernel, Kernel)
    dtype, *_, mask, _, rule = call.kernel.params
    names = list(signature_of(call.kernel.family).args)
    args: dict[str, Any] = dict(zip(names, call.args))
    depth = next((n for n in DEPTHS if n >= max(args["d"], args["e"])), None)
    if depth is None:
        return None
    bands = -(-args["queries"] // ROWS)
    args |= {"bands": bands, "units": batch * args["groups"] * bands, "each": 1}
    kernel = Kernel(BAND.family, (dtype, depth, mask, rule))
    return [replace(call, kernel=kernel, args=tuple(args.values()), tasks=args["units"], chunk=1)]
