"""Heat equation on a plate, explicit five-point stencil: a step of plain NumPy, run by NumPy and by `cg.jit`."""

import numpy as np

import cgraph as cg


def step(u, rate):
    u[1:-1, 1:-1] = u[1:-1, 1:-1] + rate * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return u


def start(n=256):
    u = np.zeros((n, n))
    u[0, :] = 1.0
    u[:, 0] = 0.5
    u[n // 3 : n // 2, n // 3 : n // 2] = 1.0
    return u


def run(step, u, steps=200, rate=0.2):
    for _ in range(steps):
        u = step(u, rate)
    return u


if __name__ == "__main__":
    want, got = run(step, start()), run(cg.jit(step), start())
    np.testing.assert_allclose(got, want, rtol=1e-12)
    print(f"heat in the plate: {got.mean():.6f}, as NumPy's")
