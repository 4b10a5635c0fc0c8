"""Monte Carlo price of an Asian option under Black-Scholes (after Hilpisch), with a stream of `cg.numpy`."""

import numpy as np

import cgraph as cg


def price(rng, S0, K, T, r, sigma, steps=50, paths=20_000):
    dt = T / steps
    S, total = S0, 0.0
    for _ in range(steps):
        z = rng.standard_normal(paths)
        S = S * np.exp((r - 0.5 * sigma**2) * dt + sigma * np.sqrt(dt) * z)
        total = total + S
    payoff = np.maximum(total / steps - K, 0)
    mean = np.exp(-r * T) * payoff.mean()
    err = np.exp(-r * T) * payoff.std() / np.sqrt(paths)
    return mean, err


if __name__ == "__main__":
    compiled = cg.jit(price, static_argnames=("steps", "paths"))
    terms = (100.0, 105.0, 1.0, 0.05, 0.2)
    outside, inside = (cg.numpy.random.default_rng(4) for _ in range(2))
    for _ in range(2):  # the stream advances
        want, got = price(outside, *terms), compiled(inside, *terms)
        np.testing.assert_allclose(got, want, rtol=1e-9)
    by_numpy = price(np.random.default_rng(4), *terms)
    assert abs(got[0] - by_numpy[0]) < 5 * (got[1] + by_numpy[1])
    print(f"price {got[0]:.4f} ± {got[1]:.4f}; with NumPy's numbers {by_numpy[0]:.4f} ± {by_numpy[1]:.4f}")
