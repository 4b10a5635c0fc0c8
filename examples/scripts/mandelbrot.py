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


def start(h=200, w=300):
    x = np.linspace(-2.5, 1.5, w)
    y = np.linspace(-1.5, 1.5, h)
    A, B = np.meshgrid(x, y)
    return A + B * 1j


def run(step, C, maxit=50):
    z = np.zeros_like(C)
    divtime = maxit + np.zeros(z.shape, dtype=int)
    for i in range(maxit):
        z, divtime = step(z, divtime, C, i, maxit)
    return divtime


if __name__ == "__main__":
    want, got = run(step, start()), run(cg.jit(step), start())
    assert (got != want).mean() < 1e-3  # points at the edge, where the last bit decides
    print(f"mean number of rounds {got.mean():.4f}; NumPy {want.mean():.4f}")
