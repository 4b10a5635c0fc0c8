"""Generator: continues sequences with a decoder, one Function call for each token, with a cache in place."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Unpack

import numpy as np

import cgraph as cg
from cgraph import Function, InputError, Node, Record, Var
from cgraph.planning.options import COMPILE_KEYWORDS, CompileKeywords
from cgraph.storage.cell import assign_all
from cgraph.system.fair_lock import FairLock
from cgraph.system.keywords import checks_keywords
from nn.cache import Cache
from nn.compile import freeze
from nn.mode import Mode
from nn.models.decoder import Decoder
from nn.progress import progress_bar

WHOLE, NUMBER = (int, np.integer), (int, float, np.integer, np.floating)
CHUNK = 32  # tokens of a prompt in one call
COLDEST = 2.0**-20  # below this temperature the best token is used; scores divided by it stay finite
LEAST = 2.0**-25  # added to uniform numbers, below their spacing: no logarithm of 0


class Choice(Record):
    """Rule that selects the next token by its scores.

    Fields
        temperature: divisor of the scores; 0 selects the best token
        top_k: number of best tokens to draw from, with all that tie with the last of them; 0 for all tokens
        top_p: draw from the best tokens whose probabilities add up to this
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        numbers = (
            isinstance(self.temperature, NUMBER) and isinstance(self.top_k, WHOLE) and isinstance(self.top_p, NUMBER)
        )
        if not (numbers and self.temperature >= 0 and self.top_k >= 0 and 0 < self.top_p <= 1):
            raise InputError(f"{self} is out of range. Use temperature >= 0, an integer top_k >= 0 and 0 < top_p <= 1.")

    def of(self, scores: Node, key: Node) -> Node:
        """Return tokens int64 ``[n]`` for scores ``[n, symbols]``; `key` is unused for a temperature below COLDEST.

        Source
            Holtzman et al. 2019, arXiv:1904.09751 (top_p); Gumbel 1954: the argmax of scores with Gumbel noise is a
            sample of their softmax
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
    """Continues a batch of sequences. Changes: the cache, with every token. Calls from several threads are queued.

    Fields
        prompt: Function of up to CHUNK tokens of each sequence ``[batch, chunk]`` and their numbers ``[batch]``
        step: Function that reads the last generated tokens; both return the next tokens ``[batch]``
        cache: keys and values so far
    """

    @checks_keywords(COMPILE_KEYWORDS, "Generator")
    def __init__(
        self,
        model: Decoder,
        batch: int = 1,
        choice: Choice = Choice(),  # noqa: B008 - frozen
        *,
        seed: int = 0,
        frozen: bool = True,
        **options: Unpack[CompileKeywords],
    ) -> None:
        """
        Parameters
            model: a Decoder whose Parameters have values
            batch: number of sequences
            choice: rule that selects the next token
            seed: seed of the random draws
            frozen: the current weights become constants of the Functions, which is fastest
            options: for ``cgraph.compile``
        """
        if not isinstance(model, Decoder) or not isinstance(choice, Choice):
            raise InputError(f"a Generator got {model!r:.60} and {choice!r:.60}. Pass a Decoder and an nn.Choice.")
        if not isinstance(batch, WHOLE) or batch < 1:
            raise InputError(f"batch is {batch!r:.60}. Pass the number of sequences, an integer >= 1.")
        self.batch, self.length, self.choice, self.seed = batch, model.length, choice, seed
        self.symbols, self._turns = model.tokens.symbols, FairLock()
        self.cache = Cache(batch, model.length)
        self.key = Var((2,), "uint32", "random_key")
        self.last = Var((batch, 1), "int64", "last")
        model = freeze(model) if frozen else model
        tokens = Var((batch, min(CHUNK, model.length)), "int64", "tokens")
        counts = Var((batch,), "int64", "counts")
        self.prompt = self._function(model, tokens, counts, [tokens, counts], dict(options))
        self.step = self._function(model, self.last, cg.Const(np.ones(batch, np.int64)), [], dict(options))

    def _function(
        self, model: Decoder, tokens: Var, counts: Node, inputs: list[Var], options: dict[str, Any]
    ) -> Function:
        """Compile a Function that reads `counts` tokens of each row after the cached ones; it returns the next ones."""
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
        """Return the continuation of each prompt: at most `tokens` tokens, ending at one of `stop`.

        Parameters
            prompts: `batch` sequences of any lengths except 0; may be bytes
            tokens: maximum number of new tokens
            stop: tokens that end a sequence
            progress: show a bar on the error stream
        Raises
            InputError: wrong number of prompts, an empty prompt, an unknown token, a sequence longer than the model's
                maximum, or a bad number of tokens
        """
        rows, ends = self._rows(prompts, tokens), frozenset(stop)
        return self._turns.run(lambda: self._following(rows, tokens, ends, progress))

    def _following(self, prompts: list[np.ndarray], tokens: int, stop: frozenset, progress: bool) -> list[list[int]]:
        """Return the continuations; the caller holds the lock."""
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
        """Return the prompts as arrays of tokens."""
        if not isinstance(tokens, WHOLE) or tokens < 0:
            raise InputError(f"tokens is {tokens!r:.60}. Pass the number of new tokens, an integer >= 0.")
        rows = [self._row(x) for x in prompts]
        if len(rows) != self.batch:
            raise InputError(
                f"{len(rows)} prompts for a batch of {self.batch}. Pass {self.batch} prompts, or make the Generator "
                "with batch=."
            )
        longest = max(map(len, rows))
        if longest + tokens > self.length:
            raise InputError(
                f"a prompt of {longest} tokens and {tokens} more exceed the decoder's length of {self.length}. Lower "
                "tokens=."
            )
        return rows

    def _row(self, prompt: Sequence[int]) -> np.ndarray:
        """Return a prompt as an array of tokens."""
        row = np.asarray([*prompt] if isinstance(prompt, Iterable) else prompt)
        if not row.size:
            raise InputError("a prompt is empty. Pass at least one token, such as the one that begins a text.")
        if row.ndim != 1 or row.dtype.kind not in "iu" or row.min() < 0 or row.max() >= self.symbols:
            raise InputError(f"a prompt is {prompt!r:.60}. Pass tokens, integers from 0 to {self.symbols - 1}.")
        return row

    def _read(self, prompts: list[np.ndarray]) -> np.ndarray:
        """Read the prompts into the cache and return the first token after each."""
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
