"""Bands of rows: the order in which kernels walk images, so that a thread processes the same rows in every call.

Tasks run image by image, band by band, plane by plane, row by row. Threads take equal consecutive parts of the tasks
(`cgraph.kernels.interpret.emit`), so if all calls go by bands, a thread reads values that it wrote itself. Moving a
value from one core's cache to another's is several times slower than reading one's own. Small images are not divided:
there the filters are larger than the images, and a thread keeps the same channels instead.
"""

from cgraph.system.alignment import round_up

BANDS = 4
LEAST_PIXELS = 144  # of an image that is cut into bands


def band_of(rows: int, columns: int) -> int:
    """Return the rows of a band."""
    return -(-rows // BANDS) if rows * columns >= LEAST_PIXELS else max(rows, 1)


def banded_tasks(n: int, planes: int, rows: int, band: int) -> int:
    """Return the tasks for `n` images, including empty ones beyond the last row."""
    return n * planes * round_up(rows, band)
