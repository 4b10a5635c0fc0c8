"""Products of bfloat16 numbers: operands are rounded, sums are float32 (docs/half.md).

A pair is an int32 that holds two numbers, adjacent in a sum, the first in its low half.
"""

from functools import partial

import numpy as np

from cgraph.dtypes.convert import FLOAT32, convert
from cgraph.dtypes.storage import BFLOAT16
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.gemm.portions import to_panels
from cgraph.kernels.kernel import Call, Pointer, View, contiguous, split_scratch
from cgraph.kernels.pairs.calls import pair_calls
from cgraph.kernels.target import Target
from cgraph.ops.physical.matmul import PackedMatmul, PanelMatmul, activate
from cgraph.ops.physical.unpack import unpack
from cgraph.system.alignment import aligned


def pack_pairs(x: np.ndarray) -> np.ndarray:
    """Round numbers ``[..., k, n]`` and pack pairs along k, ``[..., ceil(k / 2), n]``; pad an odd k with 0."""
    bits = convert(x, BFLOAT16.dtype).view(BFLOAT16.unsigned)
    out = np.zeros((*x.shape[:-2], -(-x.shape[-2] // 2), x.shape[-1], 2), bits.dtype)
    out[..., 0] = bits[..., 0::2, :]
    out[..., : x.shape[-2] // 2, :, 1] = bits[..., 1::2, :]
    return out.view("<i4")[..., 0]


def unpack_pairs(x: np.ndarray) -> np.ndarray:
    """Return the numbers of `pack_pairs`, as float32 ``[..., 2 * k, n]``."""
    halves = np.moveaxis(np.ascontiguousarray(x)[..., None].view("<u2"), -1, -2)
    halves = np.ascontiguousarray(halves).reshape(*x.shape[:-2], -1, x.shape[-1])
    return convert(halves.view(BFLOAT16.dtype), FLOAT32)


def round_to_bfloat16(x: np.ndarray) -> np.ndarray:
    """Return float32 numbers rounded to the precision of bfloat16."""
    return convert(convert(x, BFLOAT16.dtype), FLOAT32)


class PairedMatmul(PanelMatmul):
    """``activation(x @ y + addend)`` of operands rounded to bfloat16, with a constant `y` in panels.

    Operands
        x: float32 ``[..., m, k]``; a workspace holds it rounded
        panels: the pairs of `y` along k, in panels as `pack_b` returns them
        addend: float32 of the result's shape
    """

    @property
    def depth(self) -> int:
        """The number of pairs along k."""
        return -(-self.k // 2)

    def meaning(self, x, panels, *addend):
        pairs = unpack(panels, (self.depth, self.n), partial(to_panels, tile=self.tile))
        product = np.matmul(round_to_bfloat16(x), unpack_pairs(pairs)[: self.k])
        return activate(sum(addend, product), self.activation)

    def work(self, target: Target, x: Spec, panels: Spec, *addend: Spec) -> Work:
        left = Spec((*x.shape[:-1], self.depth), x.dtype)  # a pair has the bytes of a float
        product = PackedMatmul(self.depth, self.n, self.tile, self.has_addend, self.activation)
        inner = product.work(target, left, panels, *addend)

        def nbytes(out: View, x: View, *rest: View) -> list[int]:
            return [left.nbytes, inner.needs(out, (contiguous(x.at, left.shape, x.dtype), *rest))]

        def calls(out: View, x: View, *rest: View, workspace: View | None = None) -> list[Call]:
            there, room = split_scratch(workspace, *nbytes(out, x, *rest))
            at = Pointer(None) if there is None else there.at
            halves = contiguous(at, (*x.shape[:-1], 2 * self.depth), BFLOAT16.code)
            product = inner.calls(out, contiguous(at, left.shape, x.dtype), *rest, workspace=room)
            return [*pair_calls(target, halves, x), *product]

        def exact(*views: View) -> int:
            return sum(map(aligned, nbytes(*views)))

        return Work(calls, aligned(left.nbytes) + inner.nbytes, strided=True, exact=exact)
