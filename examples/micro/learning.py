"""A network that learns on a micro-controller: a training step, exported for a Cortex-M7 and run under QEMU.

    python examples/micro/learning.py [folder]

The weights are state of the exported function: every call is one step of gradient descent on eight points, and the
losses have the bits that the same step gives on this machine.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from board.run import run_on_board

import cgraph as cg

STEPS, BATCH, HIDDEN = 300, 8, 16
HERE = Path(__file__).resolve().parent


def training_step() -> tuple[cg.Node, list[cg.Var], dict[cg.Var, cg.Node]]:
    """Return the loss, the inputs and the update edges of one step."""
    rng = np.random.default_rng(0)
    points, labels = cg.Var((BATCH, 2), "float32", "points"), cg.Var((BATCH,), "int32", "labels")
    weights = []
    for name, shape in (("w1", (2, HIDDEN)), ("b1", (HIDDEN,)), ("w2", (HIDDEN, 2)), ("b2", (2,))):
        weights.append(cg.Var(shape, "float32", name))
        weights[-1].assign(rng.normal(0, 0.5, shape).astype(np.float32))
    w1, b1, w2, b2 = weights
    scores = cg.matmul(cg.tanh(cg.matmul(points, w1) + b1), w2) + b2
    loss = -cg.mean(cg.take_along_axis(cg.log_softmax(scores, axis=1), cg.expand_dims(labels, 1), axis=1))
    steps = {w: w - np.float32(0.3) * g for w, g in zip(weights, cg.gradient(loss, weights))}
    return loss, [points, labels], steps


def rings(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points inside and outside a circle, and which they are."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(-1, 1, (STEPS, BATCH, 2)).astype(np.float32)
    return points, ((points**2).sum(-1) > 0.6).astype(np.int32)


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    loss, inputs, updates = training_step()
    export = folder / "learner"
    print(cg.export(loss, inputs, export, target="cortex-m7", updates=updates, names=["loss"]))
    points, labels = rings(1)
    batches = (np.concatenate([p.reshape(-1).view(np.uint8), t.view(np.uint8)]) for p, t in zip(points, labels))
    (export / "in.bin").write_bytes(b"".join(x.tobytes() for x in batches))
    print(run_on_board(export, [HERE / "learning.c"]), end="")
    losses = np.fromfile(export / "out.bin", np.float32)
    print(f"mean loss of steps 1 to 50: {losses[:50].mean():.3f}; of the last 50: {losses[-50:].mean():.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()))
