"""Functions of SciPy and scikit-learn that take arrays of the standard, called with NumPy's arrays and with ours.

Run as a program, for both read the environment when they are imported; it prints what differs.
"""

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import cluster, fft, integrate, linalg, ndimage, signal, spatial, special, stats
from sklearn import config_context, decomposition, linear_model, metrics, preprocessing

from cgraph import array_api as xp

RNG = np.random.default_rng(0)
A, B, V = RNG.random((20, 4)), RNG.random((20, 4)), RNG.random(30)
LABELS, GUESSES = (V[:20] > 0.5).astype("int64"), (V[5:25] > 0.4).astype("int64")

CALLS: dict[str, Callable[[Callable], Any]] = {
    "cdist": lambda x: spatial.distance.cdist(x(A), x(B)),
    "convolve": lambda x: signal.convolve(x(V), x(V[:5])),
    "cumulative_trapezoid": lambda x: integrate.cumulative_trapezoid(x(V)),
    "dct": lambda x: fft.dct(x(V)),
    "detrend": lambda x: signal.detrend(x(V)),
    "entropy": lambda x: stats.entropy(x(A)),
    "erf": lambda x: special.erf(x(A)),
    "expit": lambda x: special.expit(x(A)),
    "expm": lambda x: linalg.expm(x(A[:4])),
    "fft": lambda x: fft.fft(x(V)),
    "gaussian_filter": lambda x: ndimage.gaussian_filter(x(A), 1.0),
    "gmean": lambda x: stats.gmean(x(A)),
    "hilbert": lambda x: signal.hilbert(x(V)),
    "iqr": lambda x: stats.iqr(x(A)),
    "kurtosis": lambda x: stats.kurtosis(x(A), axis=1),
    "logsumexp": lambda x: special.logsumexp(x(A), axis=1),
    "pearsonr": lambda x: stats.pearsonr(x(A[:, 0]), x(B[:, 0])).statistic,
    "skew": lambda x: stats.skew(x(A)),
    "softmax": lambda x: special.softmax(x(A), axis=1),
    "ttest_ind": lambda x: stats.ttest_ind(x(A), x(B)).pvalue,
    "variation": lambda x: stats.variation(x(A)),
    "whiten": lambda x: cluster.vq.whiten(x(A)),
    "zscore": lambda x: stats.zscore(x(A)),
    "accuracy_score": lambda x: metrics.accuracy_score(x(LABELS), x(GUESSES)),
    "cosine_similarity": lambda x: metrics.pairwise.cosine_similarity(x(A)),
    "euclidean_distances": lambda x: metrics.pairwise.euclidean_distances(x(A)),
    "mean_squared_error": lambda x: metrics.mean_squared_error(x(V[:20]), x(V[5:25])),
    "normalize": lambda x: preprocessing.normalize(x(A)),
    "PCA": lambda x: abs(decomposition.PCA(2, svd_solver="full").fit_transform(x(A))),
    "r2_score": lambda x: metrics.r2_score(x(V[:20]), x(V[5:25])),
    "Ridge": lambda x: linear_model.Ridge(solver="svd").fit(x(A), x(V[:20])).coef_,
    "StandardScaler": lambda x: preprocessing.StandardScaler().fit_transform(x(A)),
}


def differing() -> list[str]:
    """The functions that give something else with our arrays."""
    found = []
    with warnings.catch_warnings(), config_context(array_api_dispatch=True):
        warnings.simplefilter("ignore")
        for name, call in CALLS.items():
            if not np.allclose(np.asarray(call(xp.asarray)), np.asarray(call(np.asarray)), rtol=1e-6):
                found.append(name)
    return found


if __name__ == "__main__":
    sys.exit(" ".join(differing()) or 0)
