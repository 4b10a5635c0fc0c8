"""Train a small network on scikit-learn's handwritten digits, 8×8 pixels, and use it.

python examples/train_digits.py     writes out/digits_loss.png and out/digits.safetensors
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import nn

OUT = Path("out")
HELD_OUT = 360


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Pictures ``[1797, 1, 8, 8]`` from 0 to 1 and their digits, in a fixed random order."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    pictures = (data.images / 16).astype(np.float32)[order, None]
    return pictures, data.target.astype(np.int32)[order]


def main() -> None:
    OUT.mkdir(exist_ok=True)
    pictures, wanted = digits()
    held_out = (pictures[-HELD_OUT:], wanted[-HELD_OUT:])
    model = nn.models.lenet(0, image=(1, 8, 8))
    print(nn.summary(model))
    history = nn.train(
        model,
        nn.Loader((pictures[:-HELD_OUT], wanted[:-HELD_OUT]), batch=50),
        optimiser=nn.Optimiser(rate=nn.optim.Cosine(0.002, steps=28 * 15)),
        epochs=15,
        validation=held_out,
    )
    history.plot(OUT / "digits_loss.png")
    nn.save_weights(OUT / "digits.safetensors", model)
    predict = nn.compile(model, batch=100)
    right = (predict(held_out[0]).argmax(1) == held_out[1]).mean()
    first, last = history.loss[0], history.loss[-28:].mean()
    print(f"loss {first:.3f} -> {last:.3f}; {right:.1%} of {HELD_OUT} held-out digits right")
    print(f"wrote {OUT / 'digits_loss.png'} and {OUT / 'digits.safetensors'}")


if __name__ == "__main__":
    main()
