"""Generator: a decoder goes on with sequences, one Function a token, its keys and values in place."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

import cgraph as cg
from cgraph import Function, InputError, Node, Record, Var
from nn.cache import Cache
from nn.compile import freeze
from nn.mode import Mode
from nn.models.decoder import Decoder
from nn.progress import progress_bar

CHUNK = 32  # tokens of a prompt that are read at once
LEAST = 2.0**-25  # a uniform number below the smallest that is drawn: the logarithm of none is taken of 0


class Choice(Record):
    """How the next token is chosen of its scores.

    Fields
        temperature: scores are divided by it; 0 takes the best one
        top_k: the best so many alone, and those as good as the last of them; 0 for all
        top_p: the best ones alone until their probabilities add up to so much
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if self.temperature < 0 or self.top_k < 0 or not 0 < self.top_p <= 1:
            raise InputError(f"{self}: temperature and top_k are >= 0, top_p is above 0 and at most 1")

    def of(self, scores: Node, key: Node) -> Node:
        """Tokens int64 ``[n]`` for scores ``[n, symbols]``; a key draws them unless the temperature is 0.

        Source
            Holtzman et al. 2019, arXiv:1904.09751 (top_p); Gumbel 1954: the largest of scores with such noise is drawn
            by their softmax
        """
        if not self.temperature:
            return cg.argmax(scores, axis=1)
        scores = scores / self.temperature
        if 0 < self.top_k < scores.shape[1]:
            best, _ = cg.top_k(scores, self.top_k, axis=1)
            scores = cg.where(scores >= best[:, -1:], scores, -np.inf)
        if self.top_p < 1:
            ranked = cg.sort(scores, 1, descending=True)
            shares = cg.softmax(ranked, 1)
            kept = cg.cumsum(shares, 1) - shares < self.top_p
            scores = cg.where(scores >= cg.min(cg.where(kept, ranked, np.inf), 1, keepdims=True), scores, -np.inf)
        uniform = cg.random_uniform(key, scores.shape) + LEAST
        return cg.argmax(scores - np.log(-np.log(uniform)), axis=1)


class Generator:
    """Goes on with a batch of sequences. Changes: the cache, with every token.

    Fields
        prompt: reads up to CHUNK tokens of each sequence: given tokens ``[batch, chunk]`` and how many of them count
        step: reads the token that was chosen last; both return the tokens that come next, ``[batch]``
        cache: keys and values so far
    """

    def __init__(
        self,
        model: Decoder,
        batch: int = 1,
        choice: Choice = Choice(),  # noqa: B008 - frozen
        *,
        seed: int = 0,
        frozen: bool = True,
        **options: Any,
    ) -> None:
        """
        Parameters
            model: its weights have values
            batch: sequences at once
            seed: of what is drawn
            frozen: the weights as they are now become part of the Functions, which is the quickest
            options: for ``cgraph.compile``
        """
        self.batch, self.length, self.choice, self.seed = batch, model.length, choice, seed
        self.cache = Cache(batch, model.length)
        self.key = Var((2,), "uint32", "random_key")
        self.last = Var((batch, 1), "int64", "last")
        model = freeze(model) if frozen else model
        tokens = Var((batch, min(CHUNK, model.length)), "int64", "tokens")
        counts = Var((batch,), "int64", "counts")
        self.prompt = self._function(model, tokens, counts, [tokens, counts], options)
        self.step = self._function(model, self.last, cg.Const(np.ones(batch, np.int64)), [], options)

    def _function(
        self, model: Decoder, tokens: Var, counts: Node, inputs: list[Var], options: dict[str, Any]
    ) -> Function:
        """Read tokens behind those that were seen, `counts` of each row, and choose the next one."""
        mode = Mode(cache=self.cache)
        scores = model(tokens, mode=mode)
        own, following = cg.split_key(self.key)
        chosen = self.choice.of(cg.take_rows(scores, counts - 1, 1, axis=1)[:, 0], own)
        updates = mode.updates | {self.key: following, self.cache.start: self.cache.start + counts}
        updates[self.last] = cg.expand_dims(chosen, 1)
        return cg.compile(chosen, inputs, updates=updates, **options)

    def __call__(
        self, prompts: Sequence[Sequence[int]], tokens: int, stop: Collection[int] = (), progress: bool = False
    ) -> list[list[int]]:
        """What follows each prompt: at most `tokens` tokens, none behind one of `stop`.

        Parameters
            prompts: `batch` sequences of any lengths, none empty; bytes are tokens too
            progress: show a bar on the error stream
        Raises
            InputError: another number of prompts, an empty one, or one too long to go on with so far
        """
        self._check(prompts, tokens)
        self.cache.forget()
        self.key.assign(cg.random_key(self.seed))
        found: list[list[int]] = [[] for _ in prompts]
        bar = progress_bar(0, tokens, progress)
        try:
            chosen = self._read(prompts) if tokens else np.empty(0, np.int64)
            for number in range(tokens):
                for row, token in zip(found, chosen):
                    if not row or row[-1] not in stop:
                        row.append(int(token))
                bar.show(number + 1)
                if number + 1 == tokens or all(row[-1] in stop for row in found):
                    break
                chosen = self.step()
        finally:
            bar.close()
        return found

    def _check(self, prompts: Sequence[Sequence[int]], tokens: int) -> None:
        if len(prompts) != self.batch or not all(map(len, prompts)):
            raise InputError(f"{len(prompts)} prompts, for a batch of {self.batch}; none may be empty")
        longest = max(map(len, prompts))
        if longest + tokens > self.length:
            raise InputError(f"a prompt of {longest} tokens and {tokens} more, for a decoder of {self.length}")

    def _read(self, prompts: Sequence[Sequence[int]]) -> np.ndarray:
        """Read the prompts, and the first token that follows each."""
        _, chunk = self.prompt.inputs[0].shape
        lengths = np.array([len(x) for x in prompts])
        first = np.zeros(self.batch, np.int64)
        for start in range(0, int(lengths.max()), chunk):
            given, counts = np.zeros((self.batch, chunk), np.int64), np.clip(lengths - start, 0, chunk)
            for row, prompt, count in zip(given, prompts, counts):
                row[:count] = list(prompt[start : start + count])
            chosen = self.prompt(given, counts)
            first = np.where(counts > 0, chosen, first)
        self.last.assign(first[:, None])
        return first
