"""Running sums, products, minima and maxima."""

from cgraph.kernels.walk.signature import run

# n elements along the axis, `out_n` and `x_n` bytes apart
ALONG = run("scan.along", ("dtype", "how"), ("out", "x"), n="i8", out_n="i8", x_n="i8")
ACROSS = run("scan.across", ("dtype", "how"), ("out", "x"), n="i8", out_n="i8", x_n="i8")
