"""Separable Gaussian blur and unsharp mask of a colour picture: plain NumPy, run by NumPy and by `cg.jit`."""

import numpy as np

import cgraph as cg


def gauss(sigma):
    r = int(3 * sigma)
    x = np.arange(-r, r + 1)
    k = np.exp(-(x**2) / (2 * sigma**2))
    return k / k.sum()


def blur(img, k):
    r = len(k) // 2
    pad = np.pad(img, ((r, r), (0, 0), (0, 0)), mode="reflect")
    out = np.zeros_like(img)
    for i, w in enumerate(k):
        out += w * pad[i : i + img.shape[0]]
    pad = np.pad(out, ((0, 0), (r, r), (0, 0)), mode="reflect")
    out2 = np.zeros_like(img)
    for i, w in enumerate(k):
        out2 += w * pad[:, i : i + img.shape[1]]
    return out2


def sharpen(img, sigma):
    b = blur(img, gauss(sigma).astype(np.float32))  # sigma is static, so NumPy computes the filter once
    sharp = np.clip(img + 1.5 * (img - b), 0, 1)
    return (sharp * 255).astype(np.uint8)


if __name__ == "__main__":
    img = np.random.default_rng(1).random((240, 320, 3), dtype=np.float32)
    want, got = sharpen(img, 3.0), cg.jit(sharpen, static_argnames="sigma")(img, 3.0)
    assert np.abs(got.astype(int) - want).max() <= 1  # float32 sums in another order
    print(f"mean of the sharp picture: {got.mean():.3f}, as NumPy's")
