"""Arithmetic that NumPy lacks, for the simulator of GPU kernels."""

from cgraph.kernels.llvm.build import Builder


def fma(k: Builder, dtype: str):
    """Compute ``out[i] = x[i] * y[i] + z[i]`` with one rounding, on every target. Task: an element."""
    a = k.args()
    with k.task_loop() as i:
        xs = [p.plus_bytes(i * step).load() for p, step in ((a.x, a.x_step), (a.y, a.y_step), (a.z, a.z_step))]
        a.out.store(k.intrinsic("fma", *xs), i)
