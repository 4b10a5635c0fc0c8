"""Kalman filter, position and velocity from noisy positions (after the SciPy cookbook): the loop becomes `cg.scan`."""

import numpy as np

import cgraph as cg

DT = 0.1
F = np.array([[1, DT], [0, 1]])
H = np.array([[1.0, 0.0]])
Q = 0.01 * np.array([[DT**4 / 4, DT**3 / 2], [DT**3 / 2, DT**2]])
R = np.array([[0.5]])


def step(state, z):
    x, P = state
    x = F @ x
    P = F @ P @ F.T + Q
    y = z - H @ x
    S = H @ P @ H.T + R
    K = P @ H.T / S  # S is one number
    x = x + K @ y
    P = (np.eye(2) - K @ H) @ P
    return (x, P), x[:, 0]


def with_numpy(zs):
    state, xs = (np.zeros((2, 1)), np.eye(2) * 10), []
    for z in zs:
        state, x = step(state, z)
        xs.append(x)
    return np.array(xs)


@cg.jit
def with_scan(zs):
    return cg.scan(step, (np.zeros((2, 1)), np.eye(2) * 10), zs)[1]


if __name__ == "__main__":
    t = np.arange(500) * DT
    zs = np.sin(t / 10) * 20 + np.random.default_rng(3).normal(0, np.sqrt(0.5), len(t))
    want, got = with_numpy(zs), with_scan(zs)
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
    print(f"last position {got[-1, 0]:.6f}, as NumPy's")
