"""Functions of SciPy and scikit-learn that take arrays of the standard, called with NumPy's arrays and with ours.

Run as a program, for both read the environment when they are imported; it prints what differs.
"""

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import cluster, fft, integrate, linalg, ndimage, signal, spatial, special, stats
from sklearn import (
    config_context,
    decomposition,
    discriminant_analysis,
    kernel_approximation,
    linear_model,
    metrics,
    preprocessing,
)

from cgraph import array_api as xp
from tests.support.tolerance import is_near

RNG = np.random.default_rng(0)
A, B, V = RNG.random((20, 4)), RNG.random((20, 4)), RNG.random(30)
LABELS, GUESSES = (V[:20] > 0.5).astype("int64"), (V[5:25] > 0.4).astype("int64")

CALLS: dict[str, Callable[[Callable], Any]] = {
    "cdist": lambda x: spatial.distance.cdist(x(A), x(B)),
    "chdtrc": lambda x: special.chdtrc(x(A), x(B)),
    "circmean": lambda x: stats.circmean(x(A)),
    "convolve": lambda x: signal.convolve(x(V), x(V[:5])),
    "correlate": lambda x: signal.correlate(x(V), x(V[:5])),
    "cumulative_simpson": lambda x: integrate.cumulative_simpson(x(V), dx=0.1),
    "cumulative_trapezoid": lambda x: integrate.cumulative_trapezoid(x(V)),
    "dct": lambda x: fft.dct(x(V)),
    "detrend": lambda x: signal.detrend(x(V)),
    "entr": lambda x: special.entr(x(A)),
    "entropy": lambda x: stats.entropy(x(A)),
    "erf": lambda x: special.erf(x(A)),
    "expit": lambda x: special.expit(x(A)),
    "expm": lambda x: linalg.expm(x(A[:4])),
    "f_oneway": lambda x: stats.f_oneway(x(A), x(B)).pvalue,
    "fft": lambda x: fft.fft(x(V)),
    "fftconvolve": lambda x: signal.fftconvolve(x(V), x(V[:5])),
    "gammaln": lambda x: special.gammaln(x(A)),
    "gaussian_filter": lambda x: ndimage.gaussian_filter(x(A), 1.0),
    "gmean": lambda x: stats.gmean(x(A)),
    "hilbert": lambda x: signal.hilbert(x(V)),
    "hmean": lambda x: stats.hmean(x(A)),
    "ifft": lambda x: fft.ifft(x(V)),
    "iqr": lambda x: stats.iqr(x(A)),
    "irfft": lambda x: fft.irfft(x(V)),
    "kurtosis": lambda x: stats.kurtosis(x(A), axis=1),
    "logit": lambda x: special.logit(x(A)),
    "logsumexp": lambda x: special.logsumexp(x(A), axis=1),
    "moment": lambda x: stats.moment(x(A), 3),
    "pearsonr": lambda x: stats.pearsonr(x(A[:, 0]), x(B[:, 0])).statistic,
    "pmean": lambda x: stats.pmean(x(A), 2),
    "rel_entr": lambda x: special.rel_entr(x(A), x(B)),
    "rfft": lambda x: fft.rfft(x(V)),
    "sem": lambda x: stats.sem(x(A)),
    "simpson": lambda x: integrate.simpson(x(V)),
    "skew": lambda x: stats.skew(x(A)),
    "skewtest": lambda x: stats.skewtest(x(A)).pvalue,
    "sobel": lambda x: ndimage.sobel(x(A)),
    "softmax": lambda x: special.softmax(x(A), axis=1),
    "trapezoid": lambda x: integrate.trapezoid(x(V)),
    "ttest_ind": lambda x: stats.ttest_ind(x(A), x(B)).pvalue,
    "ttest_rel": lambda x: stats.ttest_rel(x(A), x(B)).pvalue,
    "variation": lambda x: stats.variation(x(A)),
    "whiten": lambda x: cluster.vq.whiten(x(A)),
    "xlogy": lambda x: special.xlogy(x(A), x(B)),
    "zmap": lambda x: stats.zmap(x(A), x(B)),
    "zscore": lambda x: stats.zscore(x(A)),
    "accuracy_score": lambda x: metrics.accuracy_score(x(LABELS), x(GUESSES)),
    "cosine_similarity": lambda x: metrics.pairwise.cosine_similarity(x(A)),
    "euclidean_distances": lambda x: metrics.pairwise.euclidean_distances(x(A)),
    "explained_variance_score": lambda x: metrics.explained_variance_score(x(V[:20]), x(V[5:25])),
    "f1_score": lambda x: metrics.f1_score(x(LABELS), x(GUESSES)),
    "LDA": lambda x: discriminant_analysis.LinearDiscriminantAnalysis().fit(x(A), x(LABELS)).predict_proba(x(A)),
    "MaxAbsScaler": lambda x: preprocessing.MaxAbsScaler().fit_transform(x(A)),
    "mean_absolute_error": lambda x: metrics.mean_absolute_error(x(V[:20]), x(V[5:25])),
    "mean_squared_error": lambda x: metrics.mean_squared_error(x(V[:20]), x(V[5:25])),
    "MinMaxScaler": lambda x: preprocessing.MinMaxScaler().fit_transform(x(A)),
    "normalize": lambda x: preprocessing.normalize(x(A)),
    "Nystroem": lambda x: kernel_approximation.Nystroem(n_components=3, random_state=0).fit_transform(x(A)),
    "PCA": lambda x: abs(decomposition.PCA(2, svd_solver="full").fit_transform(x(A))),
    "r2_score": lambda x: metrics.r2_score(x(V[:20]), x(V[5:25])),
    "Ridge": lambda x: linear_model.Ridge(solver="svd").fit(x(A), x(V[:20])).coef_,
    "StandardScaler": lambda x: preprocessing.StandardScaler().fit_transform(x(A)),
    "zero_one_loss": lambda x: metrics.zero_one_loss(x(LABELS), x(GUESSES)),
}


def differing() -> list[str]:
    """The functions that give something else with our arrays."""
    found = []
    with warnings.catch_warnings(), config_context(array_api_dispatch=True):
        warnings.simplefilter("ignore")
        for name, call in CALLS.items():
            if not is_near(np.asarray(call(xp.asarray)), np.asarray(call(np.asarray)), "float32 formulas").all():
                found.append(name)
    return found


if __name__ == "__main__":
    sys.exit(" ".join(differing()) or 0)
