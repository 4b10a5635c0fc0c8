"""Bands of rows: the order in which kernels walk images, so that a thread stays with the same rows from call to call.

Tasks run image by image, band by band, plane by plane, row by row. Threads take equal parts of the tasks in order
(`cgraph.kernels.interpret.emit`), so where all calls go by bands, a thread reads what it wrote itself: moving a value
from one core's cache to another's is several times slower than reading one's own. Small images are not cut: there the
filters are larger than the images, and a thread stays with the same channels instead.
"""

from cgraph.system.alignment import round_up

BANDS = 4
LEAST_PIXELS = 144  # of an image that is cut into bands


def band_of(rows: int, columns: int) -> int:
    """Rows of a band."""
    return -(-rows // BANDS) if rows * columns >= LEAST_PIXELS else max(rows, 1)


def banded_tasks(n: int, planes: int, rows: int, band: int) -> int:
    """Tasks for `n` images, those beyond the last row included, which do nothing."""
    return n * planes * round_up(rows, band)
