"""The epilogue of a convolution: what the kernel adds to its sums and applies before it stores them."""

from cgraph.kernels.activation.calls import NONE, BoundedActivation
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.record import Record


class Epilogue(Record):
    """``activation(sums + bias + residual)``

    Fields
        bias: in the layout of `pack_bias`, or None
        residual: channel-blocked images of the result's shape, or None
        activation: two bounds and a slope
    """

    bias: Pointer | None = None
    residual: BlockedView | None = None
    activation: BoundedActivation = NONE

    def without_residual(self) -> tuple[Pointer | None, BoundedActivation]:
        """Return bias and activation. ValueError if there is a residual."""
        if self.residual is not None:
            raise ValueError("this convolution adds no residual. Add it with an op of its own")
        return self.bias, self.activation


NO_EPILOGUE = Epilogue()
