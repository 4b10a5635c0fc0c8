"""Greedy decoders that torch exports from a script with a while loop, compared with onnxruntime."""

import io
import warnings

import numpy as np
import pytest

from cgraph.formats.onnx import load
from cgraph.ir.traverse import post_order
from cgraph.ops.while_loop import WhileLoop
from tests.support.tolerance import assert_near

torch = pytest.importorskip("torch")
onnxruntime = pytest.importorskip("onnxruntime")
WORDS, WIDTH, LONGEST = 11, 12, 24


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (torch.nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.norm = torch.nn.LayerNorm(WIDTH)

    def forward(self, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor):
        b, t, width = x.shape
        q = self.q(x).view(b, t, 3, 4).transpose(1, 2)
        keys = torch.cat([keys, self.k(x).view(b, t, 3, 4).transpose(1, 2)], 2)
        values = torch.cat([values, self.v(x).view(b, t, 3, 4).transpose(1, 2)], 2)
        y = torch.softmax(q @ keys.transpose(2, 3) / 2.0, -1) @ values
        return self.norm(x + self.out(y.transpose(1, 2).reshape(b, t, width))), keys, values


class Decoder(torch.nn.Module):
    """Caches of two layers; ids and probabilities grow; a sample that has ended gives zeros."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.places = torch.nn.Parameter(torch.randn(LONGEST, WIDTH))
        self.first, self.second, self.out = Layer(), Layer(), torch.nn.Linear(WIDTH, WORDS)

    def forward(self, ids: torch.Tensor, last: torch.Tensor):
        b = ids.shape[0]
        k0 = torch.zeros(b, 3, 0, 4)
        v0, k1, v1 = k0, k0, k0
        token, probabilities, ended = ids, torch.zeros(b, 0), torch.zeros(b, 1, dtype=torch.bool)
        t, goes_on = 0, True
        while goes_on:
            x = self.words(token) + self.places[t : t + 1]
            x, k0, v0 = self.first(x, k0, v0)
            x, k1, v1 = self.second(x, k1, v1)
            highest, token = torch.softmax(self.out(x)[:, -1], -1).max(-1, keepdim=True)
            token = torch.where(ended, torch.zeros_like(token), token)
            ended = torch.logical_or(ended, token == last)
            ids, probabilities = torch.cat([ids, token], 1), torch.cat([probabilities, highest], 1)
            t += 1
            goes_on = t < 24 and not bool(ended.all())
        return ids, probabilities


@pytest.mark.parametrize("batch", [1, 2])
def test_a_scripted_decoder_needs_no_maximum(batch):
    torch.manual_seed(batch)
    stored = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.jit.script(Decoder().eval())
        example = torch.ones(batch, 1, dtype=torch.int64), torch.tensor(3)
        torch.onnx.export(
            model, example, stored, opset_version=17, dynamo=False, input_names=["ids", "last"],
            dynamic_axes={"ids": {0: "batch"}},
        )  # fmt: skip
    read = load(stored.getvalue(), shapes={"batch": batch})
    assert [x.op.maximum for x in post_order(read.outputs) if isinstance(x.op, WhileLoop)] == [LONGEST]
    function, session = read.compile(), onnxruntime.InferenceSession(stored.getvalue())
    rounds = set()
    for seed in range(3):
        ids = np.random.default_rng(seed).integers(0, WORDS, (batch, 1))
        for last in (0, 2, 5, 77):
            results = session.run(None, {"ids": ids, "last": np.array(last)})
            rounds.add(results[1].shape[1])
            for got, want in zip(function(ids=ids, last=np.int64(last)), results, strict=True):
                assert got.shape == want.shape
                assert_near(got, want, "float32 products")
    assert LONGEST in rounds and len(rounds) > 2
