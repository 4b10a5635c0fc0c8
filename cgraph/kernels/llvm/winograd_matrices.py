"""The matrices of Winograd convolution F(m, 3): ``y = AT ((G g) * (BT d))`` for m results of a filter of 3 taps.

They follow from interpolation points (Toom and Cook) and infinity. Points 0, +-sqrt(1/2), +-sqrt(2) for m = 4 keep the
float32 error four times as small as the usual 0, +-1, +-2. Sources: Lavin and Gray 2016, arXiv:1509.09308; Barabasz et
al. 2020, arXiv:1803.10986 (points and error).
"""

import numpy as np

POINTS = {2: (0.0, 1.0, -1.0), 4: (0.0, 0.5**0.5, -(0.5**0.5), 2.0**0.5, -(2.0**0.5))}
TAPS = 3


def winograd_matrices(m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ``AT [m, m + 2]``, ``G [m + 2, 3]`` and ``BT [m + 2, m + 2]`` in float64."""
    points, n = POINTS[m], m + TAPS - 1
    at, g, bt = np.zeros((m, n)), np.zeros((n, TAPS)), np.zeros((n, n))
    for j, p in enumerate(points):
        others = [q for q in points if q != p]
        at[:, j] = [p**i for i in range(m)]
        g[j] = [p**i / np.prod([p - q for q in others]) for i in range(TAPS)]
        bt[j, : n - 1] = np.poly(others)[::-1]
    at[-1, -1] = g[-1, -1] = 1.0
    bt[-1] = np.poly(points)[::-1]
    # the last digit is rounding: without it, rows and columns of opposite points differ in signs alone
    return np.round(at, 15), g, np.round(bt, 15)
