"""Mandelbrot set with masks (after the NumPy quickstart): a step of plain NumPy, run by NumPy and by `cg.jit`."""

import numpy as np

import cgraph as cg


def step(z, divtime, C, i, maxit, r=2.0):
    z = z**2 + C
    diverge = abs(z) > r
    div_now = diverge & (divtime == maxit)
    divtime[div_now] = i
    z[diverge] = r
    return z, divtime


def run(step, h=200, w=300, maxit=50):
    x = np.linspace(-2.5, 1.5, w)
    y = np.linspace(-1.5, 1.5, h)
    A, B = np.meshgrid(x, y)
    C = A + B * 1j
    z = np.zeros_like(C)
    divtime = maxit + np.zeros(z.shape, dtype=int)
    for i in range(maxit):
        z, divtime = step(z, divtime, C, i, maxit)
    return divtime


if __name__ == "__main__":
    want, got = run(step), run(cg.jit(step))
    assert (got != want).mean() < 1e-3  # points at the edge, where the last bit decides
    print(f"mean number of rounds {got.mean():.4f}; NumPy {want.mean():.4f}")
