"""Denoise a signal by a threshold of its power spectrum (after Brunton): plain NumPy, run by NumPy and by `cg.jit`."""

import numpy as np

import cgraph as cg


def denoise(f, threshold=0.05):
    n = len(f)
    fhat = np.fft.fft(f, n)
    psd = (fhat * np.conj(fhat) / n).real
    keep = psd > threshold * psd.max()
    fhat = keep * fhat
    return np.fft.ifft(fhat).real


if __name__ == "__main__":
    t = np.arange(1 << 15) / (1 << 15)
    clean = np.sin(2 * np.pi * 50 * t) + np.sin(2 * np.pi * 120 * t)
    f = clean + 2.5 * np.random.default_rng(5).standard_normal(len(t))
    want, got = denoise(f), cg.jit(denoise)(f)
    np.testing.assert_allclose(got, want, atol=1e-9)
    print(f"error {np.sqrt(np.mean((got - clean) ** 2)):.6f}, as NumPy's")
