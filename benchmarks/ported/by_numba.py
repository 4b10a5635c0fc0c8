"""The scripts as parallel loops for Numba, as a careful user writes them. Each function takes the data of `cases`."""

from collections.abc import Callable
from math import exp, log, sqrt

import numpy as np
from numba import njit, prange

from benchmarks.ported.cases import HEAT_STEPS, PATHS

loops = njit(parallel=True, fastmath=True)


@loops
def heat_step(u, out, rate):
    for i in prange(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            out[i, j] = u[i, j] + rate * (u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1] - 4 * u[i, j])


def heat(u: np.ndarray) -> np.ndarray:
    out = u.copy()
    for _ in range(HEAT_STEPS):
        heat_step(u, out, 0.2)
        u, out = out, u
    return u


@loops
def accelerate(pos, mass, acc):
    for i in prange(len(pos)):
        x, y, z = 0.0, 0.0, 0.0
        for j in range(len(pos)):
            dx, dy, dz = pos[j, 0] - pos[i, 0], pos[j, 1] - pos[i, 1], pos[j, 2] - pos[i, 2]
            square = dx * dx + dy * dy + dz * dz + 0.01
            weight = mass[j, 0] / (square * sqrt(square))
            x, y, z = x + dx * weight, y + dy * weight, z + dz * weight
        acc[i, 0], acc[i, 1], acc[i, 2] = x, y, z


def nbody(pos: np.ndarray, vel: np.ndarray, mass: np.ndarray) -> np.ndarray:
    acc, history = np.empty_like(pos), [pos.copy()]
    accelerate(pos, mass, acc)
    for _ in range(50):
        vel += acc * 0.005
        pos += vel * 0.01
        accelerate(pos, mass, acc)
        vel += acc * 0.005
        history.append(pos.copy())
    return np.array(history)


@loops
def life_step(z, out):
    n, m = z.shape
    for i in prange(n):
        up, down = (i - 1) % n, (i + 1) % n
        for j in range(m):
            left, right = (j - 1) % m, (j + 1) % m
            count = z[up, left] + z[up, j] + z[up, right] + z[i, left] + z[i, right]
            count += z[down, left] + z[down, j] + z[down, right]
            out[i, j] = count == 3 or (count == 2 and z[i, j] == 1)


def life(z: np.ndarray) -> np.ndarray:
    out = np.empty_like(z)
    for _ in range(100):
        life_step(z, out)
        z, out = out, z
    return z


@njit
def reflected(i, n):
    return -i if i < 0 else 2 * n - 2 - i if i >= n else i


@loops
def blur_loops(image, k, out):
    n, m, _ = image.shape
    r = len(k) // 2
    lines = np.empty_like(image)
    for i in prange(n):
        for j in range(m):
            for c in range(3):
                y = np.float32(0)
                for t in range(len(k)):
                    y += k[t] * image[reflected(i + t - r, n), j, c]
                lines[i, j, c] = y
    for i in prange(n):
        for j in range(m):
            for c in range(3):
                y = np.float32(0)
                for t in range(len(k)):
                    y += k[t] * lines[i, reflected(j + t - r, m), c]
                x = image[i, j, c]
                sharp = x + np.float32(1.5) * (x - y)
                out[i, j, c] = np.uint8(min(max(sharp, np.float32(0)), np.float32(1)) * np.float32(255))


def blur(image: np.ndarray, sigma: float) -> np.ndarray:
    r = int(3 * sigma)
    k = np.exp(-(np.arange(-r, r + 1) ** 2) / (2 * sigma**2))
    out = np.empty(image.shape, np.uint8)
    blur_loops(image, (k / k.sum()).astype(np.float32), out)
    return out


@njit
def pca(x):
    n = len(x)
    x = x - np.sum(x, 0) / n
    _, s, vt = np.linalg.svd(x, full_matrices=False)
    var = s**2 / (n - 1)
    few = np.ascontiguousarray(vt[:8])
    z = x @ few.T
    return (var / var.sum())[:8], np.abs(z), np.sqrt(((x - z @ few) ** 2).mean())


@loops
def option(start, strike, years, rate, volatility):
    steps = 50
    dt = years / steps
    drift, scale = (rate - 0.5 * volatility**2) * dt, volatility * sqrt(dt)
    total, squares = 0.0, 0.0
    for path in prange(PATHS):  # noqa: B007
        s, mean = start, 0.0
        for step in range(steps):  # noqa: B007
            s *= exp(drift + scale * np.random.standard_normal())
            mean += s
        payoff = max(mean / steps - strike, 0.0)
        total += payoff
        squares += payoff * payoff
    mean = total / PATHS
    discount = exp(-rate * years)
    return discount * mean, discount * sqrt(squares / PATHS - mean * mean) / sqrt(PATHS)


@loops
def assign(x, centers, labels):
    for i in prange(len(x)):
        least, best = np.inf, 0
        for c in range(len(centers)):
            square = 0.0
            for d in range(x.shape[1]):
                square += (x[i, d] - centers[c, d]) ** 2
            if square < least:
                least, best = square, c
        labels[i] = best


@njit(fastmath=True)
def centre(x, labels, centers):
    sums, counts = np.zeros_like(centers), np.zeros(len(centers))
    for i in range(len(x)):
        counts[labels[i]] += 1
        for d in range(x.shape[1]):
            sums[labels[i], d] += x[i, d]
    new = centers.copy()
    for c in range(len(centers)):
        if counts[c] > 0:
            new[c] = sums[c] / counts[c]
    return new, np.abs(new - centers).max()


def kmeans(x: np.ndarray, centers: np.ndarray) -> tuple:
    labels, rounds, moved = np.empty(len(x), np.int64), 0, np.inf
    while moved >= 1e-6 and rounds < 100:
        assign(x, centers, labels)
        centers, moved = centre(x, labels, centers)
        rounds += 1
    return centers, rounds


@loops
def logistic_step(x, y, w, b, slope):
    """Return the loss and the slope of the bias; partial sums of blocks make up `slope`."""
    n, d = x.shape
    blocks = 16
    parts = np.zeros((blocks, d + 8))
    loss, tilt = 0.0, 0.0
    for block in prange(blocks):
        part = parts[block]
        for i in range(block * n // blocks, (block + 1) * n // blocks):
            z = b
            for j in range(d):
                z += x[i, j] * w[j]
            p = 1 / (1 + exp(-z))
            loss -= y[i] * log(p + 1e-12) + (1 - y[i]) * log(1 - p + 1e-12)
            tilt += p - y[i]
            for j in range(d):
                part[j] += x[i, j] * (p - y[i])
    for j in range(d):
        slope[j] = parts[:, j].sum() / n
    return loss / n, tilt / n


def logistic(x: np.ndarray, y: np.ndarray) -> tuple:
    w, b, losses, slope = np.zeros(x.shape[1]), 0.0, [], np.empty(x.shape[1])
    for _ in range(100):
        loss, tilt = logistic_step(x, y, w, b, slope)
        w, b = w - 0.5 * slope, b - 0.5 * tilt
        losses.append(loss)
        if len(losses) > 1 and abs(losses[-2] - losses[-1]) < 1e-4:
            break
    return w, b, losses


@loops
def mandelbrot(c):
    out = np.full(c.shape, 50, np.int64)
    for i in prange(c.shape[0]):
        for j in range(c.shape[1]):
            z = 0j
            for t in range(50):
                z = z * z + c[i, j]
                if z.real * z.real + z.imag * z.imag > 4:
                    out[i, j] = t
                    break
    return out


def fft_filter(f: np.ndarray) -> np.ndarray:
    """Numba has no Fourier transform, so this is NumPy's around a compiled threshold."""
    fhat = np.fft.fft(f)
    threshold(fhat)
    return np.fft.ifft(fhat).real


@loops
def threshold(fhat):
    n = len(fhat)
    most = 0.0
    for i in prange(n):
        most = max(most, fhat[i].real ** 2 + fhat[i].imag ** 2)
    for i in prange(n):
        if fhat[i].real ** 2 + fhat[i].imag ** 2 <= 0.05 * most:
            fhat[i] = 0


@loops
def rank(m, v, new):
    for i in prange(len(v)):
        y = 0.0
        for j in range(len(v)):
            y += m[i, j] * v[j]
        new[i] = 0.85 * y + 0.15 / len(v)
    return np.abs(new - v).sum()


def pagerank(m: np.ndarray) -> tuple:
    v, new, change, rounds = np.ones(len(m)) / len(m), np.empty(len(m)), 1.0, 0
    while change >= 1e-10:
        change = rank(m, v, new)
        v, new, rounds = new, v, rounds + 1
    return v, rounds


@njit
def kalman(zs):
    dt = 0.1
    out = np.empty((len(zs), 2))
    f, q = np.array([[1, dt], [0, 1.0]]), 0.01 * np.array([[dt**4 / 4, dt**3 / 2], [dt**3 / 2, dt**2]])
    h, x, p = np.array([[1.0, 0.0]]), np.zeros((2, 1)), np.eye(2) * 10
    for i in range(len(zs)):
        x = f @ x
        p = f @ p @ f.T + q
        gain = p @ h.T / ((h @ p @ h.T)[0, 0] + 0.5)
        x = x + gain * (zs[i] - x[0, 0])
        p = (np.eye(2) - gain @ h) @ p
        out[i] = x[:, 0]
    return out


LOOPS: dict[str, Callable] = {
    "heat": heat, "nbody": nbody, "life": life, "blur": blur, "pca": pca, "option": option, "kmeans": kmeans,
    "logistic": logistic, "mandelbrot": mandelbrot, "fft_filter": fft_filter, "pagerank": pagerank, "kalman": kalman,
}  # fmt: skip
