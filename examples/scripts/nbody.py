"""N-body simulation, leapfrog, all pairs (after P. Mocz): a step of plain NumPy, run by NumPy and by `cg.jit`."""

import numpy as np

import cgraph as cg


def acceleration(pos, mass, G, soft):
    x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
    dx, dy, dz = x.T - x, y.T - y, z.T - z
    inv_r3 = (dx**2 + dy**2 + dz**2 + soft**2) ** (-1.5)  # soft > 0, so the mask of the original never matters
    ax = G * (dx * inv_r3) @ mass
    ay = G * (dy * inv_r3) @ mass
    az = G * (dz * inv_r3) @ mass
    return np.hstack((ax, ay, az))


def step(pos, vel, acc, mass, dt=0.01, G=1.0, soft=0.1):
    vel += acc * dt / 2.0
    pos += vel * dt
    acc = acceleration(pos, mass, G, soft)
    vel += acc * dt / 2.0
    return pos, vel, acc


def start(N=200):
    rng = np.random.default_rng(17)
    mass = 20.0 * np.ones((N, 1)) / N
    pos, vel = rng.standard_normal((2, N, 3))
    return pos, vel - np.mean(mass * vel, 0) / np.mean(mass), mass


def run(step, acceleration, pos, vel, mass, steps=50):
    acc = acceleration(pos, mass, 1.0, 0.1)
    history = [pos.copy()]
    for _ in range(steps):
        pos, vel, acc = step(pos, vel, acc, mass)
        history.append(pos.copy())
    return np.array(history)


if __name__ == "__main__":
    want, got = run(step, acceleration, *start()), run(cg.jit(step), cg.jit(acceleration), *start())
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
    print(f"{got.shape[1]} bodies after {len(got) - 1} steps: spread {got[-1].std():.6f}, as NumPy's")
