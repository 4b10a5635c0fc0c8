"""Activations that a kernel applies before it stores: two bounds and a slope. All others stay pointwise ops."""

from math import inf

from cgraph.record import Record


class BoundedActivation(Record):
    """``min(high, max(low, x if x > 0 else slope * x))``

    Fields
        low, high: bounds with ``low <= 0 <= high``, so that the unused lanes of a value in lanes stay zero
        slope: factor of negative values; 1 leaves them
    """

    low: float = -inf
    high: float = inf
    slope: float = 1.0

    def __post_init__(self) -> None:
        if not self.low <= 0 <= self.high:
            raise ValueError(f"bounds [{self.low}, {self.high}] do not hold 0: unused lanes would not stay zero")

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
