"""Decoders: their parts against formulas, and what they generate with a cache against what they say without one."""

import math
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph import InputError, ShapeError
from nn.layers.positions import alibi_slopes, relative_bias, relative_buckets, rotate
from nn.models.decoder import approximate_gelu
from tests.support.tolerance import assert_close, assert_near

SIZES = {"symbols": 40, "length": 48, "features": 32, "heads": 4, "layers": 2}
PROMPTS = [[7, 1, 30], [5] * 34, [9]]


def far_reaching(weights):
    """A decoder whose layers see a window of keys, the nearer ones more."""
    model = nn.models.gpt(weights, **SIZES)
    attention = nn.MultiHeadAttention(32, 4, causal=True, key_heads=1, window=9, alibi=True)
    block = nn.models.DecoderBlock(nn.LayerNorm(32), attention, nn.RMSNorm(32), nn.SwiGLU(32, 40))
    made = nn.models.Decoder(model.tokens, None, (block, block), model.norm, model.scores, 48)
    return nn.initialise(made, weights)


def by_distance(weights):
    """A decoder whose layers add a number for each distance, and cap what they add it to."""
    model = nn.models.gpt(weights, **SIZES)
    attention = nn.MultiHeadAttention(32, 4, causal=True, buckets=8, farthest=20, softcap=0.5)
    block = nn.models.DecoderBlock(nn.LayerNorm(32), attention, nn.RMSNorm(32), nn.SwiGLU(32, 40))
    made = nn.initialise(nn.models.Decoder(model.tokens, None, (block,), model.norm, model.scores, 48), weights)
    attention.relative.assign(np.random.default_rng(0).standard_normal((4, 8)).astype("float32"))
    return made


DECODERS = {
    "gpt": lambda: nn.models.gpt(3, **SIZES),
    "llama": lambda: nn.models.llama(3, **SIZES, key_heads=2),
    "window": lambda: far_reaching(3),
    "distances": lambda: by_distance(3),
}


def scores_of(predict, tokens):
    """Scores behind the last token, by the whole model without a cache."""
    x = np.zeros((1, 48), np.int64)
    x[0, : len(tokens)] = tokens
    return predict(x)[0, len(tokens) - 1]


@pytest.mark.parametrize("name", DECODERS)
def test_sequences_of_different_lengths_go_on_as_without_a_cache(name):
    model = DECODERS[name]()
    found, predict = nn.Generator(model, len(PROMPTS))(PROMPTS, 12), nn.compile(model)
    for prompt, following in zip(PROMPTS, found):
        assert len(following) == 12
        for i, token in enumerate(following):
            scores = scores_of(predict, [*prompt, *following[:i]])
            assert scores[token] >= scores.max() - 1e-5


@pytest.mark.parametrize("network", [nn.models.gpt, nn.models.llama])
def test_tokens_and_positions_start_with_the_deviation_of_gpt_2(network):
    """0.02, by Radford et al. 2019; 8,192 draws deviate from it by less than 5 percent."""
    model = network(0, symbols=64, length=64, features=128, heads=4, layers=1)
    for x in (model.tokens.weight, model.positions):
        if x is not None:
            values = x.value
            assert values.size == 8192 and abs(values.std() / 0.02 - 1) < 0.05 and abs(values.mean()) < 0.001


def test_bytes_are_tokens():
    generator = nn.Generator(nn.models.llama(1, **SIZES), 1)
    assert generator([bytes([3, 1, 2])], 4) == generator([[3, 1, 2]], 4)


def test_a_run_has_the_bits_of_one_from_scratch_whatever_was_in_the_cache():
    generator = nn.Generator(nn.models.llama(1, **SIZES), 1, nn.Choice(1.0), seed=5)
    first = generator([[1, 2, 3]], 30)
    rows = {key: x.value for key, x in generator.cache.rows.items()}
    generator([[30] * 40], 8)
    assert generator([[1, 2, 3]], 30) == first
    for key, x in generator.cache.rows.items():
        assert x.value[:, :, :32].tobytes() == rows[key][:, :, :32].tobytes()


class Bar:
    """A bar that shows nothing and counts how often it is closed."""

    closed = 0

    def show(self, done):
        pass

    def close(self):
        self.closed += 1


def test_an_interrupt_closes_the_bar_and_the_next_run_begins_anew(monkeypatch):
    generator, bar = nn.Generator(nn.models.llama(1, **SIZES), 1), Bar()
    wanted, step = generator([[3, 4, 5]], 8), generator.step
    generator.step = interrupted
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("nn.generate.progress_bar", lambda *_: bar)
        generator([[3, 4, 5]], 8)
    generator.step = step
    assert bar.closed == 1
    assert generator([[3, 4, 5]], 8) == wanted


def interrupted():
    raise KeyboardInterrupt


def test_calls_from_several_threads_take_turns():
    generator = nn.Generator(nn.models.llama(1, **SIZES), 1)
    prompts = [[i, 2 * i + 1] for i in range(8)]
    wanted = [generator([x], 20) for x in prompts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda x: generator([x], 20), prompts)) == wanted


def test_a_thousand_tokens_take_no_memory_and_have_the_bits_of_a_prompt_of_a_thousand():
    model = nn.models.gpt(0, symbols=20, length=1010, features=8, heads=2, layers=1)
    generator = nn.Generator(model, 2)
    rows = set(generator.cache.rows.values())
    written = [source.op.writes for x, source in generator.step.updates.items() if x in rows]
    assert written == [True, True]
    assert generator.step.nbytes < min(x.nbytes for x in rows)
    generator([[1], [2, 3]], 3)
    addresses = [x.cell.value.address for x in generator.cache.rows.values()]
    tracemalloc.start()
    found = generator([[1], [2, 3]], 1000)
    now, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [len(x) for x in found] == [1000, 1000]
    assert now < 200_000  # the tokens themselves, and what Python keeps of its own
    assert [x.cell.value.address for x in generator.cache.rows.values()] == addresses
    written_one_by_one = {key: x.value for key, x in generator.cache.rows.items()}
    texts = [prompt + tokens[:-1] for prompt, tokens in zip([[1], [2, 3]], found)]
    assert generator(texts, 1) == [tokens[-1:] for tokens in found]
    for key, x in generator.cache.rows.items():
        assert x.value[:, :, :1000].tobytes() == written_one_by_one[key][:, :, :1000].tobytes()


def test_generation_ends_at_stop_tokens_one_sequence_after_the_other():
    model = nn.models.gpt(3, **SIZES)
    generator = nn.Generator(model, 2)
    free = generator(PROMPTS[:2], 14)
    ends = [free[0][4], free[1][9]]
    cut = [next(i for i, token in enumerate(row) if token in ends) + 1 for row in free]
    assert generator(PROMPTS[:2], 14, stop=ends) == [row[:n] for row, n in zip(free, cut)]
    assert generator(PROMPTS[:2], 0) == [[], []]


SCORES = np.log(np.array([[0.4, 0.3, 0.15, 0.1, 0.05]]))


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        (nn.Choice(), [1, 0, 0, 0, 0]),
        (nn.Choice(1.0), [0.4, 0.3, 0.15, 0.1, 0.05]),
        (nn.Choice(1.0, top_k=2), [4 / 7, 3 / 7, 0, 0, 0]),
        (nn.Choice(1.0, top_p=0.71), [0.4 / 0.85, 0.3 / 0.85, 0.15 / 0.85, 0, 0]),
        (nn.Choice(1.0, top_p=0.3), [1, 0, 0, 0, 0]),
        (nn.Choice(0.5), [0.16 / 0.285, 0.09 / 0.285, 0.0225 / 0.285, 0.01 / 0.285, 0.0025 / 0.285]),
        (nn.Choice(1.0, top_k=3, top_p=0.5), [4 / 7, 3 / 7, 0, 0, 0]),
        (nn.Choice(1e-6), [1, 0, 0, 0, 0]),
        (nn.Choice(1e-40), [1, 0, 0, 0, 0]),
        (nn.Choice(1e30), [0.2] * 5),
    ],
    ids=str,
)
def test_tokens_are_drawn_by_their_shares(choice, wanted):
    many = np.repeat(SCORES, 20_000, 0).astype("float32")
    tokens = choice.of(cg.Const(many), cg.Const(cg.random_key(1))).eval()
    assert_near(
        np.bincount(tokens, minlength=5) / len(many),
        wanted,
        "drawn moments",
        np.sqrt(np.array(wanted) * (1 - np.array(wanted)) / len(many)),
    )


REFUSED = {
    "a prompt without tokens": (InputError, lambda g: g([[1], []], 3)),
    "too few prompts": (InputError, lambda g: g([[1]], 3)),
    "more tokens than there is room for": (InputError, lambda g: g([[1], [1] * 40], 9)),
    "a temperature below zero": (InputError, lambda g: nn.Choice(-1.0)),
    "no token of the model": (InputError, lambda g: g([[1], [40]], 3)),
    "a token below zero": (InputError, lambda g: g([[1], [-1]], 3)),
    "half a token": (InputError, lambda g: g([[1], [0.5]], 3)),
    "a token beyond all numbers": (InputError, lambda g: g([[1], [2**70]], 3)),
    "a text": (InputError, lambda g: g(["a", "b"], 3)),
    "prompts that are tokens": (InputError, lambda g: g([1, 2], 3)),
    "fewer tokens than none": (InputError, lambda g: g([[1], [1]], -1)),
    "half a number of tokens": (InputError, lambda g: g([[1], [1]], 2.5)),
    "a temperature that is no number": (InputError, lambda g: nn.Choice(float("nan"))),
    "a temperature in words": (InputError, lambda g: nn.Choice("hot")),
    "half a token of the best": (InputError, lambda g: nn.Choice(1.0, top_k=1.5)),
    "a choice that is none": (InputError, lambda g: nn.Generator(nn.models.gpt(None, **SIZES), 1, 0.5)),
    "no decoder": (InputError, lambda g: nn.Generator(nn.models.mlp(None))),
    "a batch of none": (InputError, lambda g: nn.Generator(nn.models.gpt(None, **SIZES), 0)),
    "no probability at all": (InputError, lambda g: nn.Choice(1.0, top_p=0.0)),
    "heads that do not serve": (ShapeError, lambda g: nn.MultiHeadAttention(32, 4, key_heads=3)),
    "heads without pairs": (ShapeError, lambda g: nn.MultiHeadAttention(12, 4, rotary=1e4)),
    "alibi that looks ahead": (ShapeError, lambda g: nn.MultiHeadAttention(32, 4, alibi=True)),
    "fewer buckets than near distances": (ShapeError, lambda g: nn.MultiHeadAttention(32, 4, buckets=3)),
    "buckets for nearer keys alone": (ShapeError, lambda g: nn.MultiHeadAttention(32, 4, buckets=32, farthest=32)),
    "buckets and alibi": (ShapeError, lambda g: nn.MultiHeadAttention(32, 4, causal=True, alibi=True, buckets=8)),
    "a cache for a layer that looks ahead": (
        InputError,
        lambda g: nn.MultiHeadAttention(32, 4)(cg.Var((2, 1, 32)), mode=nn.Mode(cache=nn.Cache(2, 5))),
    ),
    "more tokens than a decoder has positions": (
        ShapeError,
        lambda g: nn.models.gpt(None, **SIZES)(cg.Var((1, 49), "int64")),
    ),
    "more tokens than the length, without learned positions": (
        ShapeError,
        lambda g: nn.models.llama(None, **SIZES)(cg.Var((1, 49), "int64")),
    ),
}


@pytest.fixture(scope="module")
def generator():
    return nn.Generator(nn.models.gpt("zeros", **SIZES), 2)


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(name, generator):
    kind, use = REFUSED[name]
    with pytest.raises(kind):
        use(generator)


def test_rotation_is_that_of_complex_numbers_from_any_position_on():
    x = np.random.default_rng(0).standard_normal((2, 3, 5, 8)).astype("float32")
    for start in (None, np.array([0, 100])):
        places = np.arange(5) + (np.zeros((2, 1)) if start is None else start[:, None])
        turn = np.exp(1j * places[:, None, :, None] * 10000.0 ** (-np.arange(4) / 4))
        want = (x[..., :4] + 1j * x[..., 4:]) * turn
        got = rotate(cg.Const(x), None if start is None else cg.Const(start)).eval()
        assert_close(got, np.concatenate([want.real, want.imag], 3).astype("float32"))


def test_slopes_are_those_of_the_paper():
    assert_near(alibi_slopes(8), 2.0 ** -np.arange(1, 9), "float64 through float32")
    assert_near(alibi_slopes(6), [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3], "float64 through float32")


def test_distance_counts_in_each_head_by_its_slope():
    layer = nn.initialise(nn.MultiHeadAttention(8, 2, causal=True, alibi=True), 0)
    plain = nn.MultiHeadAttention(8, 2)
    plain.hold(query=layer.query, key=layer.key, value=layer.value, output=layer.output)
    far = np.arange(6)[:, None] - np.arange(6)
    mask = np.where(far >= 0, -far * alibi_slopes(2)[:, None, None], -np.inf)[None].astype("float32")
    x = cg.Const(np.random.default_rng(0).standard_normal((3, 6, 8)).astype("float32"))
    assert_close(layer(x).eval(), plain(x, x, cg.Const(mask)).eval())


def bucket_of(distance, buckets, farthest, causal):
    """As T5's paper has it: half of the buckets for near keys one by one, half for far ones by the logarithm."""
    first = 0
    if not causal:
        buckets //= 2
        first = buckets if distance > 0 else 0
    far = max(-distance, 0) if causal else abs(distance)
    near = buckets // 2
    if far < near:
        return first + far
    step = (buckets - near) * math.log(far / near) / math.log(farthest / near)
    return first + min(near + int(step), buckets - 1)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("buckets", "farthest"), [(4, 5), (8, 30), (32, 128)])
def test_buckets_are_those_of_t5(causal, buckets, farthest):
    distances = np.arange(-200, 201)
    found = relative_buckets(distances, buckets, farthest, causal)
    np.testing.assert_array_equal(found, [bucket_of(d, buckets, farthest, causal) for d in distances])
    assert found.min() == 0 and found.max() == buckets - 1


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("keys", [3, 6, 9])
def test_distances_are_added_by_a_view_of_one_number_each(causal, keys):
    table = np.random.default_rng(0).standard_normal((2, 8)).astype("float32")
    got = relative_bias(cg.Const(table), 6, keys, 20, causal).eval()
    want = [[table[:, bucket_of(j - i, 8, 20, causal)] for j in range(keys)] for i in range(6)]
    np.testing.assert_array_equal(got[0], np.moveaxis(want, 2, 0))
    q, k = cg.Var((1, 2, 600, 8), name="q"), cg.Var((1, 2, 600, 8), name="k")
    bias = relative_bias(cg.Var((2, 8), name="table"), 600, 600, 20, causal)
    function = cg.compile(cg.scaled_dot_product_attention(q, k, k, bias, causal), [q, k])
    assert function.nbytes < 600 * 600 * 4


def test_a_layer_learns_its_distances():
    layer = nn.initialise(nn.MultiHeadAttention(8, 2, buckets=8, farthest=20), 0)
    x = cg.Const(np.random.default_rng(0).standard_normal((3, 6, 8)).astype("float32"))
    gradient = cg.gradient(cg.sum(cg.square(layer(x))), layer.relative).eval()
    seen = {bucket_of(d, 8, 20, False) for d in range(-5, 6)}
    assert set(np.flatnonzero(np.abs(gradient).sum(0))) == seen


def test_norm_and_mixing_by_their_formulas():
    x = np.random.default_rng(0).standard_normal((3, 8)).astype("float32")
    norm, mixing = nn.initialise(nn.RMSNorm(8)), nn.initialise(nn.SwiGLU(8, 12))
    assert_close(norm(cg.Const(x)).eval(), x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5))
    gate, up, down = (part.weight.value for part in (mixing.gate, mixing.up, mixing.down))
    assert_close(mixing(cg.Const(x)).eval(), (x @ gate / (1 + np.exp(-(x @ gate))) * (x @ up)) @ down)


TIES = np.log(np.array([[0.4, 0.4, 0.15, 0.05]]))


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        (nn.Choice(1.0, top_k=1), [0.5, 0.5, 0, 0]),
        (nn.Choice(1.0, top_p=0.3), [0.5, 0.5, 0, 0]),
        (nn.Choice(1.0, top_k=3), [0.4 / 0.95, 0.4 / 0.95, 0.15 / 0.95, 0]),
        (nn.Choice(1.0, top_k=4), [0.4, 0.4, 0.15, 0.05]),
        (nn.Choice(1.0, top_k=9), [0.4, 0.4, 0.15, 0.05]),
    ],
    ids=str,
)
def test_tokens_of_equal_scores_are_drawn_alike_and_more_than_there_are_is_all(choice, wanted):
    many = np.repeat(TIES, 20_000, 0).astype("float32")
    tokens = choice.of(cg.Const(many), cg.Const(cg.random_key(1))).eval()
    deviations = np.sqrt(np.array(wanted) * (1 - np.array(wanted)) / len(many))
    assert_near(np.bincount(tokens, minlength=4) / len(many), wanted, "drawn moments", deviations)


def small():
    """A decoder that takes little time to compile."""
    return nn.models.gpt(1, symbols=9, length=40, features=8, heads=2, layers=1)


def generators(model, *options):
    return [nn.Generator(model, 1, engine="reference", **each) for each in options]


def test_draws_follow_from_the_seed():
    warm = {"choice": nn.Choice(1.0)}
    default, zero, one = (
        g([[1, 2, 3]], 30) for g in generators(small(), warm, {**warm, "seed": 0}, {**warm, "seed": 1})
    )
    assert default == zero != one


def only_token_2(model):
    bias = np.zeros(9, "f4")
    bias[2] = 1e3
    model.scores.bias.assign(bias)


def test_the_weights_are_those_of_the_compilation_unless_they_are_live():
    model = small()
    default, frozen, live = generators(model, {}, {"frozen": True}, {"frozen": False})
    before = live([[1]], 3)
    assert before == default([[1]], 3) == frozen([[1]], 3) != [[2, 2, 2]]
    only_token_2(model)
    assert default([[1]], 3) == frozen([[1]], 3) == before
    assert live([[1]], 3) == [[2, 2, 2]]


class Counting(Bar):
    """A bar that notes what it shows. Changes: with every token."""

    def __init__(self, *arguments):
        self.arguments, self.shown = arguments, []

    def show(self, done):
        self.shown.append(done)


@pytest.mark.parametrize(("stop", "shown"), [((), [1, 2, 3, 4]), ((5,), [1, 2, 3, 4]), ((5, 2), [1])])
def test_each_token_is_one_call_and_none_follows_the_end(stop, shown, monkeypatch):
    model, bars, calls = small(), [], []
    only_token_2(model)
    (generator,) = generators(model, {})
    step = generator.step
    generator.step = lambda: calls.append(0) or step()
    monkeypatch.setattr("nn.generate.progress_bar", lambda *arguments: bars.append(Counting(*arguments)) or bars[-1])
    for progress in (False, True):
        assert generator([[1, 2]], 4, stop, progress) == [[2] * len(shown)]
        assert bars[-1].arguments == (0, 4, progress) and bars[-1].shown == shown and bars[-1].closed == 1
    assert len(calls) == 2 * (len(shown) - 1)


@pytest.mark.parametrize("operands", [2, 3])
def test_a_cache_serves_one_operand(operands):
    layer, mode = nn.MultiHeadAttention(8, 2, causal=True), nn.Mode(cache=nn.Cache(2, 5))
    xs = [cg.Var((2, 1, 8)), cg.Var((2, 1, 8)), cg.Var((1, 1), "bool")]
    assert layer(xs[0], mode=mode).shape == (2, 1, 8)
    with pytest.raises(InputError, match="a cache needs a causal layer with one operand"):
        layer(*xs[:operands], mode=mode)


@pytest.mark.parametrize("choice", [nn.Choice(1.0), nn.Choice(1.0, top_k=4), nn.Choice(1.0, top_p=0.9)], ids=str)
def test_where_all_random_numbers_are_zero_the_best_token_is_drawn(choice, monkeypatch):
    monkeypatch.setattr(cg, "random_uniform", lambda key, shape: cg.zeros(shape))
    scores = cg.Const(np.array([[0.0, 3.0, 1.0, 2.0], [5.0, 0.0, 0.0, 1.0]], "f4"))
    assert choice.of(scores, cg.Const(cg.random_key(0))).eval().tolist() == [1, 0]


@pytest.mark.parametrize("dtype", ["uint8", "uint64", "int8", "int64"])
def test_tokens_may_have_any_integer_dtype_and_reach_the_last_symbol(dtype):
    (generator,) = generators(small(), {})
    assert generator([np.array([1, 8], dtype)], 3) == generator([[1, 8]], 3)
    with pytest.raises(InputError, match="Pass tokens, integers from 0 to 8"):
        generator([np.array([1, 9], dtype)], 3)


@pytest.mark.parametrize(("length", "chunk"), [(7, 7), (32, 32), (33, 32)])
def test_a_prompt_is_read_in_pieces_no_longer_than_a_sequence(length, chunk):
    model = nn.models.gpt(1, symbols=9, length=length, features=8, heads=2, layers=1)
    (generator,) = generators(model, {})
    assert generator.prompt.inputs[0].shape == (1, chunk)
    (tokens,) = generator([[1] * (length - 1)], 1)
    assert len(tokens) == 1
    with pytest.raises(InputError, match=f"a prompt of {length} tokens and 1 more exceed the decoder's length"):
        generator([[1] * length], 1)


def test_a_prompt_of_another_row_may_be_the_longest():
    generator = nn.Generator(small(), 2, engine="reference")
    for prompts in ([[1] * 38, [2]], [[2], [1] * 38]):
        assert [len(x) for x in generator(prompts, 2)] == [2, 2]
        with pytest.raises(InputError, match="a prompt of 38 tokens and 3 more exceed the decoder's length of 40"):
            generator(prompts, 3)


def test_the_gelu_of_gpt_2_is_that_of_a_tanh():
    x = np.linspace(-3, 3, 13)
    want = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    got = approximate_gelu(cg.Const(x.astype("f4"))).eval()
    assert_close(got, want.astype("f4"))
    assert (got != cg.gelu(cg.Const(x.astype("f4"))).eval())[x != 0].any()
    assert small().blocks[0].mixing.parts[1].function is approximate_gelu


ANSWERS = {
    "1 prompts for a batch of 2. Pass 2 prompts, or make the Generator with batch=.": lambda g: g([[1]], 3),
    "3 prompts for a batch of 2. Pass 2 prompts, or make the Generator with batch=.": lambda g: g([[1]] * 3, 3),
    "a prompt of 40 tokens and 9 more exceed the decoder's length of 48. Lower tokens=.": lambda g: g(
        [[1], [1] * 40], 9
    ),
    "a prompt is empty. Pass at least one token, such as the one that begins a text.": lambda g: g([[1], []], 3),
    "a prompt is [40]. Pass tokens, integers from 0 to 39.": lambda g: g([[1], [40]], 3),
    "a prompt is [[1, 2]]. Pass tokens, integers from 0 to 39.": lambda g: g([[1], [[1, 2]]], 3),
    "tokens is -1. Pass the number of new tokens, an integer >= 0.": lambda g: g([[1], [2]], -1),
    "batch is 0. Pass the number of sequences, an integer >= 1.": lambda g: nn.Generator(small(), 0),
    "a Generator got 3 and Choice(temperature=0.0, top_k=0, top_p=1.0). Pass a Decoder and an nn.Choice.": (
        lambda g: nn.Generator(3)
    ),
    "Choice(temperature=1.0, top_k=2, top_p=1.5) is out of range. Use temperature >= 0, an integer top_k >= 0 and 0 < "
    "top_p <= 1.": lambda g: nn.Choice(1.0, 2, 1.5),
    "49 tokens exceed the decoder's length of 48. Pass fewer, or build it with length=.": (
        lambda g: nn.models.gpt(None, **SIZES)(cg.Var((1, 49), "int64"))
    ),
    "features 32 is not a multiple of heads 5. Change either.": lambda g: nn.MultiHeadAttention(32, 5),
    "heads 4 is not a multiple of key_heads 3. Change either.": lambda g: nn.MultiHeadAttention(32, 4, key_heads=3),
    "rotary embeddings need heads of an even size, not 3. Change features or heads.": (
        lambda g: nn.MultiHeadAttention(12, 4, rotary=1e4)
    ),
    "buckets 8, farthest 7, alibi False: use at least 4 buckets, a larger farthest, and alibi=False.": (
        lambda g: nn.MultiHeadAttention(32, 4, buckets=8, farthest=7)
    ),
}


@pytest.mark.parametrize("message", ANSWERS)
def test_a_refusal_has_each_number_at_its_words(message, generator):
    with pytest.raises((InputError, ShapeError)) as error:
        ANSWERS[message](generator)
    assert str(error.value) == message
