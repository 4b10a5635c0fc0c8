"""Quantisation of float networks to 8-bit integers: see docs/quantised.md."""

from cgraph.quantiser.quantise import Choices, Quantised, quantise
from cgraph.quantiser.report import Likeness, Report, Sensitivity
from cgraph.system.progress import Bars

__all__ = ["Bars", "Choices", "Likeness", "Quantised", "Report", "Sensitivity", "quantise"]


def __dir__() -> list[str]:
    return __all__
