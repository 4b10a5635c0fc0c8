"""Reader of TFLite models."""

from cgraph.formats.tflite.reader import load

__all__ = ["load"]


def __dir__() -> list[str]:
    return __all__
