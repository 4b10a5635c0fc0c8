"""Scans of JPEG files: a file of many short scans is small, but each scan passes over all blocks of the picture.

Source: ITU T.81, annex B.
"""

import re
from typing import Any

from cgraph.formats.allowance import Allowance

MARKER = re.compile(rb"\xff+[^\x00\xff\xd0-\xd7]")  # not a stuffed byte, not a restart
LONE, END, SCAN = (0x01, 0xD8), 0xD9, 0xDA  # markers without a segment, of the end and of a scan
COEFFICIENT = 2  # bytes
STEP = 4  # samples that a scan passes in the time of one computed element


def count_scans(data: bytes) -> int:
    """Count the scans of a JPEG file."""
    at = count = 0
    while (marker := MARKER.search(data, at)) and (kind := data[marker.end() - 1]) != END:
        at = marker.end()
        if kind not in LONE:
            count += kind == SCAN
            at += max(int.from_bytes(data[at : at + 2]), 2)
    return count


def spend_scans(image: Any, allowance: Allowance) -> None:
    """Charge the scans of an open JPEG of Pillow; if there are several, all coefficients stay in memory."""
    at = image.fp.tell()
    image.fp.seek(0)
    scans = count_scans(image.fp.read())
    image.fp.seek(at)
    across, down = (max(layer[i] for layer in image.layer) for i in (1, 2))
    samples = image.width * image.height * sum(h * v / (across * down) for _, h, v, _ in image.layer)
    nbytes = COEFFICIENT * samples if scans > 1 else 0
    allowance.spend(f"{scans} scans of {image.width} x {image.height} pixels", nbytes, scans * samples / STEP)
