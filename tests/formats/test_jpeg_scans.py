"""Scans of JPEG files: markers that count, and what scans cost beside the picture's samples."""

import io

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.jpeg_scans import count_scans, spend_scans

Image = pytest.importorskip("PIL.Image")
START, SCAN, END = b"\xff\xd8", b"\xff\xda\x00\x02", b"\xff\xd9"


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (START + SCAN + b"data" + END, 1),
        (START + SCAN + SCAN + END, 2),
        (START + SCAN + b"\xff\x00\xda" + b"\xff\xd0" + b"\xff\xd7" + SCAN + END, 2),  # stuffed bytes and restarts
        (START + b"\xff\xfe\x00\x06" + SCAN + SCAN + END, 1),  # a comment that holds one
        (START + SCAN + END + bytes(2) + SCAN, 1),
        (START + b"\xff\xff\xff\xda\x00\x02" + END, 1),  # bytes of padding before a marker
        (START + b"\xff\x01" + SCAN + END, 1),  # a marker without a segment
        (START + b"\xff\xfe\x00\x00" + SCAN + END, 1),  # a length below its own two bytes
        (START + b"\xff\xfe\xff\xff" + SCAN, 0),
        (SCAN + SCAN[:2], 2),
        (b"", 0),
    ],
)
def test_scans_are_counted_as_a_decoder_meets_them(data, count):
    assert count_scans(data) == count


def opened(progressive, subsampling, size=(48, 32)):
    file = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).save(file, "JPEG", progressive=progressive, subsampling=subsampling)
    file.seek(0)
    return Image.open(file)


@pytest.mark.parametrize(("subsampling", "share"), [("4:4:4", 3), ("4:2:2", 2), ("4:2:0", 1.5)])
@pytest.mark.parametrize("progressive", [False, True])
def test_several_scans_cost_their_coefficients_and_each_its_samples(subsampling, share, progressive):
    image, allowance = opened(progressive, subsampling), Allowance(0)
    nbytes, work, at = allowance.nbytes, allowance.work, image.fp.tell()
    spend_scans(image, allowance)
    image.fp.seek(0)
    scans = count_scans(image.fp.read())
    assert (scans > 1) is progressive
    samples = 48 * 32 * share
    assert nbytes - allowance.nbytes == (2 * samples if progressive else 0)
    assert work - allowance.work == scans * samples / 4
    image.fp.seek(at)
    spend_scans(image, allowance)
    assert image.fp.tell() == at and np.asarray(image).shape == (32, 48, 3)


def test_more_than_the_allowance_is_refused():
    image, allowance = opened(False, "4:4:4"), Allowance(0)
    allowance.work = 48 * 32 * 3 // 4 - 1
    with pytest.raises(FormatError, match="^1 scans of 48 x 32 pixels would take 1,152 computed elements"):
        spend_scans(image, allowance)
