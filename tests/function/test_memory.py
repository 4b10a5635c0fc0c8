"""The plan is the allocation: what a process grows by is the plan, and it does not grow any more."""

import subprocess
import sys

import pytest

from tests.support.patience import PATIENCE

pytestmark = pytest.mark.slow

HEAD = """
import gc, numpy as np, cgraph as cg
def resident():
    for line in open("/proc/self/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
def peak():
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
def chain(n, k):
    x = cg.Var((n,), name="x")
    y = x
    for i in range(k):
        y = cg.sin(y)[::-1] * y
    return x, y
"""

GROWTH = """
warm, y = chain(4096, 6)
cg.compile(y, warm)(np.ones(4096, "float32"), copy=False)
n = 8 << 20
x, y = chain(n, 6)
given = np.ones(n, "float32")
function = cg.compile(y, x)
before = resident()
function(given, copy=False)
function(given, copy=False)
print(peak() - before, function.nbytes)
"""

SOAK = """
x, y = chain(10_000, 4)
function = cg.compile([y, cg.sum(y)], x)
given = np.ones(10_000, "float32")
for _ in range(300):
    function(given)
before = resident()
for _ in range(5000):
    function(given)
print(resident() - before, 5000)
"""

SHAPES = """
def once(n):
    x, y = chain(n, 3)
    cg.compile([y, cg.sum(y)], x)(np.ones(n, "float32"))
for n in range(1000, 1100):
    once(n)
gc.collect()
before = resident()
for n in range(2000, 2400):
    once(n)
gc.collect()
print(resident() - before, 400)
"""


def measured(code: str) -> tuple[int, int]:
    done = subprocess.run([sys.executable, "-c", HEAD + code], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr[-2000:]
    first, second = done.stdout.split()
    return int(first), int(second)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_grows_by_the_plan():
    grown, planned = measured(GROWTH)
    assert planned > 50 << 20
    assert grown <= planned + max(0.03 * planned, 8 << 20)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_repeated_runs_do_not_grow():
    grown, runs = measured(SOAK)
    assert grown < 1024 * runs


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_many_shapes_do_not_grow():
    grown, shapes = measured(SHAPES)
    assert grown < 32 * 1024 * shapes
