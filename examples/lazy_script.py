"""Build once, change one input, evaluate again: only what depends on the change runs.

python examples/lazy_script.py
"""

import numpy as np

import cgraph as cg


def main() -> None:
    n = 1000
    u = cg.Var((n,), "float64", "u")
    w = cg.Var((n,), "float64", "w")

    # nothing is computed here: these lines write down a graph
    wave = np.sin(u) + 0.5 * np.sin(3 * u)
    energy = cg.sum(wave * wave)
    mixed = wave * w / energy

    function = cg.compile([energy, mixed], changing=[w])
    u.assign(np.linspace(0, 2 * np.pi, n))
    for step in range(3):
        w.assign(np.full(n, float(step + 1)))
        total, result = function()
        print(f"w = {step + 1}: energy {total:.3f}, first values {np.round(result[1:4], 6)}")

    print()
    print(f"arena {function.nbytes} bytes; without sharing {function.compiled.unshared_nbytes}")


if __name__ == "__main__":
    main()
