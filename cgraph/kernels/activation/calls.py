"""Activations that a kernel applies before storing: two bounds and a slope. All others stay pointwise ops."""

from math import inf

from cgraph.record import Record


class BoundedActivation(Record):
    """``min(high, max(low, x if x > 0 else slope * x))``

    Fields
        low, high: bounds with ``low <= 0 <= high``, so that unused channels of a blocked value stay zero
        slope: factor of negative values; 1 leaves them unchanged
    """

    low: float = -inf
    high: float = inf
    slope: float = 1.0

    def __post_init__(self) -> None:
        if not self.low <= 0 <= self.high:
            raise ValueError(
                f"bounds [{self.low}, {self.high}] exclude 0, so unused channels of a block "
                "would not stay 0. Use bounds with low <= 0 <= high, or clip in an op of its own"
            )

    @property
    def args(self) -> dict[str, int | float]:
        """The arguments of `cgraph.kernels.activation.signature`."""
        general = int(self.high != inf or self.slope != 1.0)
        return {"general": general, "low": float(self.low), "high": float(self.high), "slope": float(self.slope)}


NONE = BoundedActivation()
RELU = BoundedActivation(low=0.0)
RELU6 = BoundedActivation(low=0.0, high=6.0)


def leaky(slope: float) -> BoundedActivation:
    return BoundedActivation(slope=slope)


def clip(low: float, high: float) -> BoundedActivation:
    return BoundedActivation(low=low, high=high)
