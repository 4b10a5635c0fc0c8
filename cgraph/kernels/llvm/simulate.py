"""Arithmetic that NumPy lacks, for the simulator of GPU kernels."""

from cgraph.kernels.llvm.build import Builder


def fma(k: Builder, dtype: str):
    """``out[i] = x[i] * y[i] + z[i]`` with one rounding, on every target. Task: an element. Steps are bytes."""
    kinds = {"x": f"{dtype}*", "x_step": "i8", "y": f"{dtype}*", "y_step": "i8", "z": f"{dtype}*", "z_step": "i8"}
    a = k.args(**kinds, out=f"{dtype}*")
    first, last = k.tasks()
    with k.loop(first, last) as i:
        xs = [p.plus_bytes(i * step).load() for p, step in ((a.x, a.x_step), (a.y, a.y_step), (a.z, a.z_step))]
        a.out.store(k.intrinsic("fma", *xs), i)
