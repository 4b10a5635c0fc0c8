"""Compile once, start at once: a network and a training step as folders that a process with NumPy alone runs.

python examples/saved_function.py     writes out/saved_network and out/saved_step
"""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import cgraph as cg
import nn
from nn.models import resnet20

OUT = Path("out")
FRESH = """
import sys, time
import numpy as np
start = time.perf_counter()
from cgraph import load
scores = load("out/saved_network")
loaded = time.perf_counter()
found = scores(np.load("out/picture.npy"))[0]
print(f"import and load {1e3 * (loaded - start):.1f} ms, first call {1e3 * (time.perf_counter() - loaded):.1f} ms")
print("no compiler was loaded:", "llvmlite" not in sys.modules)
np.save("out/scores.npy", found)
"""


def main() -> None:
    OUT.mkdir(exist_ok=True)
    for name in ("saved_network", "saved_step"):
        shutil.rmtree(OUT / name, ignore_errors=True)  # a folder that is there is never overwritten

    network = nn.compile(resnet20(0), batch=1).function
    picture = np.random.default_rng(0).standard_normal((1, 3, 32, 32), np.float32)
    network.save(OUT / "saved_network")
    np.save(OUT / "picture.npy", picture)
    subprocess.run([sys.executable, "-P", "-c", FRESH], check=True)
    print("the same bits:", np.array_equal(np.load(OUT / "scores.npy"), network(picture)[0]))

    x, w = cg.Var((8,), name="x"), cg.Var((8,), name="w").assign(np.ones(8, np.float32))
    loss = cg.sum(cg.square(w - x))
    step = cg.compile(loss, [x], updates={w: w - 0.1 * cg.gradient(loss, w)})
    step.save(OUT / "saved_step")
    trained = cg.load(OUT / "saved_step")
    losses = [float(trained(np.zeros(8, np.float32))) for _ in range(3)]
    trained.save_state(OUT / "state.safetensors")  # what w holds now; `load_state` restores it
    print("losses of the loaded step:", losses)


if __name__ == "__main__":
    main()
