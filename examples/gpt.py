"""Train a small decoder on the documentation that ships with Python, and let it go on with a line.

python examples/gpt.py [--steps 1000] [--prompt "The "]     writes out/gpt.safetensors

Losses are nats a character. Beside the decoder's on text that it never saw stand those of counts: each character by the
ones before it, shorter ones filling in where longer ones were rare (Witten and Bell 1991).
"""

import argparse
from collections import Counter, defaultdict
from math import log
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np

import nn

OUT = Path("out")
LENGTH, BATCH, HELD_OUT = 256, 16, 20_000


def counted(text: str, held_out: str, most: int) -> list[float]:
    """Loss on `held_out` by counts of up to 1 .. `most` characters of `text`."""
    followers: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for n in range(most):
        for i in range(n, len(text)):
            followers[text[i - n : i]][text[i]] += 1
    totals = {seen: sum(counts.values()) for seen, counts in followers.items()}
    losses = np.zeros(most)
    for i in range(most, len(held_out)):
        share = 1 / 256
        for n in range(most):
            seen = held_out[i - n : i]
            kinds = len(followers[seen]) if seen in totals else 0
            if kinds:
                share = (followers[seen][held_out[i]] + kinds * share) / (totals[seen] + kinds)
            losses[n] -= log(share)
    return list(losses / (len(held_out) - most))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--prompt", default="The ")
    args = parser.parse_args()
    text = "\n\n".join(topics[name] for name in sorted(topics))
    symbols = sorted({*text, *args.prompt})
    tokens = np.array([symbols.index(c) for c in text])
    windows = np.lib.stride_tricks.sliding_window_view(tokens[:-HELD_OUT], LENGTH + 1)
    unseen = tokens[-HELD_OUT:][: HELD_OUT // LENGTH * LENGTH + 1]
    model = nn.models.llama(0, len(symbols), LENGTH, features=128, heads=4, layers=4)
    print(f"{len(text):,} characters of {len(symbols)} kinds, {model.size:,} weights")
    data = nn.Loader((windows[:, :-1], windows[:, 1:]), BATCH, order="sampled")
    rate = nn.optim.Cosine(0.003, steps=args.steps)
    nn.train(model, data, optimiser=nn.Optimiser(rate=rate), epochs=args.steps / data.steps_per_epoch)
    OUT.mkdir(exist_ok=True)
    nn.save_weights(OUT / "gpt.safetensors", model)

    scores = nn.compile(model, batch=BATCH)(unseen[:-1].reshape(-1, LENGTH)).astype("float64")
    shares = scores - np.log(np.exp(scores).sum(2, keepdims=True))
    loss = -np.take_along_axis(shares, unseen[1:].reshape(-1, LENGTH, 1), 2).mean()
    print(f"loss {loss:.3f} on text that it never saw; by counts of", end=" ")
    print(", ".join(f"{n}: {x:.3f}" for n, x in enumerate(counted(text[:-HELD_OUT], text[-HELD_OUT:], 6), 1)))
    generator = nn.Generator(model, choice=nn.Choice(temperature=0.7, top_p=0.95))
    prompt = [symbols.index(c) for c in args.prompt]
    (found,) = generator([prompt], LENGTH - len(prompt), progress=True)
    print(args.prompt + "".join(symbols[i] for i in found))


if __name__ == "__main__":
    main()
