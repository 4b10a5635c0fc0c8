"""Generator: a decoder goes on with sequences, one Function a token, its keys and values in place."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

import cgraph as cg
from cgraph import Function, InputError, Node, Record, Var
from cgraph.storage.cell import assign_all
from cgraph.system.fair_lock import FairLock
from nn.cache import Cache
from nn.compile import freeze
from nn.mode import Mode
from nn.models.decoder import Decoder
from nn.progress import progress_bar

WHOLE, NUMBER = (int, np.integer), (int, float, np.integer, np.floating)
CHUNK = 32  # tokens of a prompt that are read at once
COLDEST = 2.0**-20  # a temperature below which nothing but the best is drawn: scores divided by it stay finite
LEAST = 2.0**-25  # a uniform number below the smallest that is drawn: the logarithm of none is taken of 0


class Choice(Record):
    """How the next token is chosen of its scores.

    Fields
        temperature: scores are divided by it; 0, or nearly so, takes the best one
        top_k: the best so many alone, and those as good as the last of them; 0 for all
        top_p: the best ones alone until their probabilities add up to so much
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        numbers = (
            isinstance(self.temperature, NUMBER) and isinstance(self.top_k, WHOLE) and isinstance(self.top_p, NUMBER)
        )
        if not (numbers and self.temperature >= 0 and self.top_k >= 0 and 0 < self.top_p <= 1):
            raise InputError(f"{self}: temperature and the whole top_k are >= 0, top_p is above 0 and at most 1")

    def of(self, scores: Node, key: Node) -> Node:
        """Tokens int64 ``[n]`` for scores ``[n, symbols]``; a key draws them unless the temperature is below COLDEST.

        Source
            Holtzman et al. 2019, arXiv:1904.09751 (top_p); Gumbel 1954: the largest of scores with such noise is drawn
            by their softmax
        """
        if self.temperature < COLDEST:
            return cg.argmax(scores, axis=1)
        scores = scores / self.temperature
        if 0 < self.top_k < scores.shape[1]:
            best, _ = cg.top_k(scores, self.top_k, axis=1)
            scores = cg.where(scores >= best[:, -1:], scores, -np.inf)
        if self.top_p < 1:
            ranked = cg.sort(scores, 1, descending=True)
            shares = cg.softmax(ranked, 1)
            likeliest = cg.cumsum(shares, 1) - shares < self.top_p
            scores = cg.where(scores >= cg.min(cg.where(likeliest, ranked, np.inf), 1, keepdims=True), scores, -np.inf)
        uniform = cg.random_uniform(key, scores.shape) + LEAST
        return cg.argmax(scores - np.log(-np.log(uniform)), axis=1)


class Generator:
    """Goes on with a batch of sequences. Changes: the cache, with every token; calls from several threads take turns.

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
        if not isinstance(model, Decoder) or not isinstance(choice, Choice):
            raise InputError(f"a Generator takes a Decoder and a Choice, not {model!r:.60} and {choice!r:.60}")
        if not isinstance(batch, WHOLE) or batch < 1:
            raise InputError(f"batch is how many sequences there are at once, a whole number >= 1, not {batch!r:.60}")
        self.batch, self.length, self.choice, self.seed = batch, model.length, choice, seed
        self.symbols, self._turns = model.tokens.symbols, FairLock()
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
        next_tokens = self.choice.of(cg.take_rows(scores, counts - 1, 1, axis=1)[:, 0], own)
        updates = mode.updates | {self.key: following, self.cache.start: self.cache.start + counts}
        updates[self.last] = cg.expand_dims(next_tokens, 1)
        return cg.compile(next_tokens, inputs, updates=updates, **options)

    def __call__(
        self, prompts: Sequence[Sequence[int]], tokens: int, stop: Collection[int] = (), progress: bool = False
    ) -> list[list[int]]:
        """What follows each prompt: at most `tokens` tokens, none behind one of `stop`.

        Parameters
            prompts: `batch` sequences of any lengths, none empty; bytes are tokens too
            progress: show a bar on the error stream
        Raises
            InputError: another number of prompts, an empty one, one of what is no token of the model, or one too long
                to go on with so far; `tokens` is no number of tokens
        """
        rows, ends = self._rows(prompts, tokens), frozenset(stop)
        return self._turns.run(lambda: self._following(rows, tokens, ends, progress))

    def _following(self, prompts: list[np.ndarray], tokens: int, stop: frozenset, progress: bool) -> list[list[int]]:
        assign_all(self.cache.beginning() | {self.key: cg.random_key(self.seed)})
        sequences: list[list[int]] = [[] for _ in prompts]
        bar = progress_bar(0, tokens, progress)
        try:
            next_tokens = self._read(prompts) if tokens else np.empty(0, np.int64)
            for number in range(tokens):
                for row, token in zip(sequences, next_tokens):
                    if not row or row[-1] not in stop:
                        row.append(int(token))
                bar.show(number + 1)
                if number + 1 == tokens or all(row[-1] in stop for row in sequences):
                    break
                next_tokens = self.step()
        finally:
            bar.close()
        return sequences

    def _rows(self, prompts: Sequence[Sequence[int]], tokens: int) -> list[np.ndarray]:
        """The prompts as arrays of tokens."""
        if not isinstance(tokens, WHOLE) or tokens < 0:
            raise InputError(f"tokens is how many follow each prompt, a whole number >= 0, not {tokens!r:.60}")
        rows = [self._row(x) for x in prompts]
        if len(rows) != self.batch:
            raise InputError(f"{len(rows)} prompts, for a batch of {self.batch}")
        longest = max(map(len, rows))
        if longest + tokens > self.length:
            raise InputError(f"a prompt of {longest} tokens and {tokens} more, for a decoder of {self.length}")
        return rows

    def _row(self, prompt: Sequence[int]) -> np.ndarray:
        """A prompt's tokens."""
        row = np.asarray([*prompt] if isinstance(prompt, Iterable) else prompt)
        if not row.size:
            raise InputError("a prompt is empty; it takes a token at least, such as the one that begins a text")
        if row.ndim != 1 or row.dtype.kind not in "iu" or row.min() < 0 or row.max() >= self.symbols:
            raise InputError(f"a prompt is {prompt!r:.60}; it takes tokens, whole numbers from 0 to {self.symbols - 1}")
        return row

    def _read(self, prompts: list[np.ndarray]) -> np.ndarray:
        """Read the prompts, and the first token that follows each."""
        _, chunk = self.prompt.inputs[0].shape
        lengths = np.array([len(x) for x in prompts])
        first = np.zeros(self.batch, np.int64)
        for start in range(0, int(lengths.max()), chunk):
            block, counts = np.zeros((self.batch, chunk), np.int64), np.clip(lengths - start, 0, chunk)
            for row, prompt, count in zip(block, prompts, counts):
                row[:count] = prompt[start : start + count]
            tokens = self.prompt(block, counts)
            first = np.where(counts > 0, tokens, first)
        self.last.assign(first[:, None])
        return first
