"""The epilogue of a convolution: what the kernel adds to its sums and applies before it stores them."""

from cgraph.kernels.activation.calls import NONE, BoundedActivation
from cgraph.kernels.expression import Program
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.record import Record


class Epilogue(Record):
    """``program(activation(sums + bias + residual))``; at most one of the two functions does anything.

    Fields
        bias: in the layout of `pack_bias`, or None
        residual: channel-blocked images of the result's shape, or None
        activation: two bounds and a slope
        program: a scalar program of one operand; () returns it unchanged. Blocks of a GPU's threads take none
    """

    bias: Pointer | None = None
    residual: BlockedView | None = None
    activation: BoundedActivation = NONE
    program: Program = ()

    def without_residual(self) -> tuple[Pointer | None, BoundedActivation]:
        """Return bias and activation. ValueError if there is a residual."""
        if self.residual is not None:
            raise ValueError("this convolution adds no residual. Add it with an op of its own")
        return self.bias, self.activation


NO_EPILOGUE = Epilogue()
