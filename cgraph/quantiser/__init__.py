"""Float networks made into networks of bytes: see docs/quantised.md."""

from cgraph.bars import Bars
from cgraph.quantiser.quantise import Choices, Quantised, quantise
from cgraph.quantiser.report import Likeness, Report, Sensitivity

__all__ = ["Bars", "Choices", "Likeness", "Quantised", "Report", "Sensitivity", "quantise"]
