"""Reader of Darknet networks: ``.cfg`` files, with weights from ``.weights`` files."""

from cgraph.formats.darknet.detector import load_detector
from cgraph.formats.darknet.reader import load
from cgraph.formats.darknet.writer import write_weights

__all__ = ["load", "load_detector", "write_weights"]


def __dir__() -> list[str]:
    return __all__
