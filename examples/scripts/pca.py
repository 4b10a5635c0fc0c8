"""PCA by SVD, projection on some components, explained variance: plain NumPy, run by NumPy and by `cg.jit`."""

import numpy as np

import cgraph as cg


def pca(X, k=8):
    n = len(X)
    X = X - X.mean(axis=0)
    U, S, Vt = np.linalg.svd(X, full_matrices=False)
    var = S**2 / (n - 1)
    ratio = var / var.sum()
    Z = X @ Vt[:k].T
    back = Z @ Vt[:k]
    err = np.sqrt(((X - back) ** 2).mean())
    return ratio[:k], np.abs(Z), err


if __name__ == "__main__":
    rng = np.random.default_rng(2)
    X = rng.standard_normal((2000, 32)) @ rng.standard_normal((32, 32))
    want, got = pca(X), cg.jit(pca)(X)
    for x, y in zip(got, want):
        np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-10)
    print(f"error of eight components: {got[2]:.6f}, as NumPy's")
