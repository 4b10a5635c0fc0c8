"""Train a small network on handwritten digits, then make its values bytes and see what that costs.

python examples/quantise_digits.py     writes out/digits_int8.onnx, which any engine runs
"""

from train_digits import HELD_OUT, OUT, digits

import nn


def main() -> None:
    OUT.mkdir(exist_ok=True)
    pictures, wanted = digits()
    seen, held_out = pictures[:-HELD_OUT], pictures[-HELD_OUT:]
    model = nn.models.lenet(0, image=(1, 8, 8))
    rate = nn.optim.Cosine(0.002, steps=28 * 5)
    nn.train(model, nn.Loader((seen, wanted[:-HELD_OUT]), batch=50), optimiser=nn.Optimiser(rate=rate), epochs=5)
    small = nn.quantise(model, seen[:200], wanted[:200], batch=20, sensitivity=True)
    print(small.report)
    floats = nn.compile(model, batch=20)
    for name, predict in (("floats", floats), ("bytes", small)):
        right = (predict(held_out).argmax(1) == wanted[-HELD_OUT:]).mean()
        print(f"{name}: {right:.1%} of {HELD_OUT} held-out digits right, a plan of {predict.function.nbytes} bytes")
    small.save(OUT / "digits_int8.onnx")
    print(f"wrote {OUT / 'digits_int8.onnx'}")


if __name__ == "__main__":
    main()
