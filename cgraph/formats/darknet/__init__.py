"""Darknet: networks from ``.cfg`` files, with weights from ``.weights`` files."""

from cgraph.formats.darknet.reader import load

__all__ = ["load"]
