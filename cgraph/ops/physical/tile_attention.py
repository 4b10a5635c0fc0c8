"""Attention on tile registers (`cgraph.kernels.tile_attention`)."""

from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.attention.calls import AttentionViews
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.target import Target
from cgraph.kernels.tile_attention.calls import TileSizes, tile_attention_calls
from cgraph.ops.attention import Attention
from cgraph.ops.physical.pairs import round_to_bfloat16


class TiledAttention(Attention):
    """Attention whose products round both sides to bfloat16: queries times the scale, keys, weights and values.

    Operands
        float32, as for Attention without a start
    """

    @property
    def name(self) -> str:
        return "attention"

    @staticmethod
    def product(x, y):
        return round_to_bfloat16(x) @ round_to_bfloat16(y)

    def work(self, target: Target, q: Spec, k: Spec, v: Spec, *rest: Spec) -> Work:
        overwrites = (0,) if q.shape[3] == v.shape[3] else ()

        def calls(out: View, q: View, k: View, v: View, *rest: View, workspace: View | None = None) -> list[Call]:
            operands = AttentionViews(q, k, v, self.rest(rest)[0])
            return tile_attention_calls(target, out, operands, self.rule, workspace)

        return Work(calls, TileSizes.of(target, q.shape, k.shape, v.shape).nbytes, overwrites, strided=True)
