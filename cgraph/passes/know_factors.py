"""Fixed-point factors that are known become part of the code, for processors where 64-bit products are slow."""

from cgraph.ir.graph import Node, apply
from cgraph.ir.rewrite import rewrite
from cgraph.ops.fixed import FixedProduct, KnownFixedProduct
from cgraph.ops.leaf import ConstOp
from cgraph.ops.shape import BroadcastTo

LEAST_SHIFT = -30


def know_factors(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Replace products by one constant factor and one constant shift that is not positive, with the same bits."""
    return rewrite(outputs, RULES)


def with_known_factor(node: Node) -> Node | None:
    """fixed_product(x, factor, shift) -> the product by numbers"""
    x, *constants = node.operands
    factor, shift = (number_of(y) for y in constants)
    if factor is None or shift is None or factor < 0 or not LEAST_SHIFT <= shift <= 0:
        return None
    return apply(KnownFixedProduct(factor, shift, node.op.once), x)  # type: ignore[attr-defined]


def number_of(x: Node) -> int | None:
    """Return the number of a constant that is equal everywhere; None for other values."""
    source = x.operands[0] if isinstance(x.op, BroadcastTo) else x
    return int(source.op.array.item()) if isinstance(source.op, ConstOp) and source.size == 1 else None


RULES = [(FixedProduct, with_known_factor)]
