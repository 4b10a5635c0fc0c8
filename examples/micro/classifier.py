"""A picture classifier for a micro-controller: digits, as bytes, on a Cortex-M7 under QEMU.

    python examples/micro/classifier.py [folder]

A small convolutional network is trained on scikit-learn's handwritten digits, quantised, exported, and asked about
pictures that it has not seen.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from board.run import run_on_board

import cgraph as cg
import nn
from cgraph.quantiser import quantise
from nn.compile import freeze

HERE = Path(__file__).resolve().parent
HELD_OUT, ASKED = 360, 100


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return the pictures, float32 ``[n, 1, 8, 8]`` from 0 to 1, and the digits."""
    from sklearn.datasets import load_digits

    data = load_digits()
    return (data.images[:, None] / 16).astype(np.float32), data.target.astype(np.int32)


def network() -> nn.Layer:
    def block(inputs: int, outputs: int) -> list[nn.Layer]:
        return [nn.Conv2d(inputs, outputs, 3, pad=1), nn.Activation("relu"), nn.MaxPool2d(2)]

    return nn.Sequential(*block(1, 8), *block(8, 16), nn.Flatten(), nn.Linear(64, 10))


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    pictures, labels = digits()
    model = nn.initialise(network(), 0)
    train = nn.Loader((pictures[:-HELD_OUT], labels[:-HELD_OUT]), batch=50)
    nn.train(model, train, optimiser=nn.Optimiser(rate=nn.optim.Const(0.003)), epochs=15)
    image = cg.Var((1, 1, 8, 8), "float32", "image")
    small = quantise(freeze(model)(image), [image], [(pictures[i : i + 1],) for i in range(200)])
    export = folder / "digits"
    print(cg.export(small.outputs, small.inputs, export, target="cortex-m7", names=["scores"], form="small"))
    (export / "in.bin").write_bytes(pictures[-ASKED:].tobytes())
    print(run_on_board(export, [HERE / "classifier.c"]), end="")
    answers = np.fromfile(export / "out.bin", np.int32)
    print(f"{(answers == labels[-ASKED:]).sum()} of {ASKED} unseen digits are right")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()))
