"""Operators of exported decoders, with onnxruntime as the oracle; a cache that is bound to Vars is written in place."""

import numpy as np
import onnx
import pytest
from onnx import helper

from cgraph.cli import main
from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from tests.support.tolerance import assert_close

onnxruntime = pytest.importorskip("onnxruntime")
RNG = np.random.default_rng(0)
B, H, G, D, T = 2, 4, 2, 16, 12  # batch, heads of queries and of keys, size of a head, tokens of the cache


def floats(*shape):
    return RNG.standard_normal(shape).astype("float32")


def model_of(kind, given, outputs, opset=23, domain="", **attributes):
    """A model of one node; operands of None are left out."""
    names = [name if x is not None else "" for name, x in given.items()]
    node = helper.make_node(kind, names, outputs, domain=domain, **attributes)
    typed = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in given.items()
        if x is not None
    ]
    graph = helper.make_graph([node], "one", typed, [onnx.ValueInfoProto(name=x) for x in outputs if x])
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString()


def both(kind, given, outputs, **more):
    """Outputs of ours and of onnxruntime, by name."""
    body, values = model_of(kind, given, outputs, **more), {n: x for n, x in given.items() if x is not None}
    model = load(body)
    got = model.compile()(**{x.name: values[x.name] for x in model.inputs})
    session = onnxruntime.InferenceSession(body, providers=["CPUExecutionProvider"])
    want = session.run(None, {x.name: values[x.name] for x in session.get_inputs()})
    names = [x for x in outputs if x]
    return dict(zip(names, got)), dict(zip(names, want))


def cached(length, seen, rotary=None, packed=False, **attributes):
    """GroupQueryAttention of `length` tokens behind those that were seen, which differ by sample."""
    past = [floats(B, G, T, D) for _ in range(2)]
    q, k, v = floats(B, length, H * D), floats(B, length, G * D), floats(B, length, G * D)
    angles = np.arange(T)[:, None] / 10 ** np.arange(D // 2)
    tables = [None, None] if rotary is None else [np.cos(angles).astype("f4"), np.sin(angles).astype("f4")]
    last = np.array(seen, "i4") + length - 1
    given = {"q": np.concatenate([q, k, v], 2) if packed else q}
    given |= {"k": None if packed else k, "v": None if packed else v, "past_k": past[0], "past_v": past[1]}
    given |= {"last": last, "total": np.array(T, "i4"), "cosines": tables[0], "sines": tables[1]}
    if rotary is not None:
        attributes |= {"do_rotary": 1, "rotary_interleaved": int(rotary == "pairs")}
    options = {"num_heads": H, "kv_num_heads": G, "domain": "com.microsoft", **attributes}
    return given, options


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("rotary", [None, "halves", "pairs"])
@pytest.mark.parametrize("attributes", [{}, {"local_window_size": 3}, {"scale": 0.5}, {"softcap": 0.7}], ids=str)
def test_one_token_behind_a_cache(packed, rotary, attributes):
    given, options = cached(1, (5, 9), rotary, packed, **attributes)
    got, want = both("GroupQueryAttention", given, ["y", "present_k", "present_v"], **options)
    assert_close(got["y"], want["y"])
    for name in ("present_k", "present_v"):
        for sample, seen in enumerate((5, 9)):
            assert_close(got[name][sample, :, : seen + 1], want[name][sample, :, : seen + 1])


def test_a_prompt_without_a_past():
    given, options = cached(6, (0, 0), "halves")
    given |= {"past_k": None, "past_v": None, "total": np.array(6, "i4")}
    got, want = both("GroupQueryAttention", given, ["y", "present_k", "present_v"], **options)
    for name in want:
        assert_close(got[name], want[name])


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("simplified", [False, True])
@pytest.mark.parametrize("wide", [(2, 3, 8), (3, 8)], ids=str)
def test_the_norm_of_a_sum(simplified, bias, wide):
    given = {"x": floats(2, 3, 8), "skip": floats(*wide), "scale": floats(8)}
    given |= {} if simplified else {"shift": floats(8)}
    given |= {"bias": floats(8) if bias else None}
    kind = "SkipSimplifiedLayerNormalization" if simplified else "SkipLayerNormalization"
    got, want = both(kind, given, ["y", "", "", "sum"], domain="com.microsoft", epsilon=1e-3)
    for name in want:
        assert_close(got[name], want[name])


@pytest.mark.parametrize("shape", [(2, 5, 32), (2, 4, 5, 8)], ids=str)
@pytest.mark.parametrize("places", [np.array([3]), np.array([[0, 1, 2, 3, 4], [7, 6, 5, 4, 3]])], ids=["one", "each"])
@pytest.mark.parametrize("pairs", [0, 1])
def test_rotary_positions_of_the_runtimes_own(shape, places, pairs):
    angles = np.arange(10)[:, None] / 10 ** np.arange(4)
    given = {"x": floats(*shape), "places": places, "c": np.cos(angles).astype("f4"), "s": np.sin(angles).astype("f4")}
    got, want = both("RotaryEmbedding", given, ["y"], domain="com.microsoft", interleaved=pairs)
    assert_close(got["y"], want["y"])


@pytest.mark.parametrize("mask", [None, "bool", "numbers"])
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("past", [0, 3])
def test_attention_behind_a_past_that_grows(mask, causal, past):
    given = {"q": floats(B, 5, H * D), "k": floats(B, 5, G * D), "v": floats(B, 5, G * D)}
    seen = RNG.random((5, 5 + past)) < 0.7
    seen[:, 0] = True
    given["mask"] = {None: None, "bool": seen, "numbers": floats(5, 5 + past)}[mask]
    if past:
        given |= {"past_k": floats(B, G, past, D), "past_v": floats(B, G, past, D)}
    outputs = ["y", "present_k", "present_v"]
    got, want = both("Attention", given, outputs, q_num_heads=H, kv_num_heads=G, is_causal=causal)
    for name in want:
        assert_close(got[name], want[name])


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("length", [1, 5])
def test_attention_under_a_cap_is_one_step(causal, length):
    """A cap low enough to matter, and a mask of numbers that it must not reach."""
    given = {"q": floats(B, length, H * D), "k": floats(B, 5, G * D), "v": floats(B, 5, G * D)}
    given["mask"] = 3 * floats(length, 5)
    got, want = both("Attention", given, ["y"], q_num_heads=H, kv_num_heads=G, is_causal=causal, softcap=0.7)
    assert_close(got["y"], want["y"])


def test_norms_and_positions_of_the_newest_operators():
    got, want = both("RMSNormalization", {"x": floats(2, 3, 8), "scale": floats(8)}, ["y"], axis=-1, epsilon=1e-4)
    assert_close(got["y"], want["y"])
    angles = np.arange(5)[:, None] / 10 ** np.arange(4)
    tables = {"c": np.cos(angles).astype("f4")[None].repeat(2, 0), "s": np.sin(angles).astype("f4")[None].repeat(2, 0)}
    got, want = both("RotaryEmbedding", {"x": floats(2, 4, 5, 8), **tables}, ["y"])
    assert_close(got["y"], want["y"])


@pytest.mark.parametrize("attributes", [{"smooth_softmax": 1}, {"qk_output": 1}], ids=str)
def test_what_is_not_there_is_refused(attributes):
    given, options = cached(1, (5, 9), **attributes)
    with pytest.raises(FormatError, match="not supported"):
        load(model_of("GroupQueryAttention", given, ["y", "present_k", "present_v"], **options))


def test_a_past_that_is_kept_in_place_decodes_as_one_that_is_given_and_returned():
    """The keys and values of each token, written behind those before; position and length come from outside."""
    given, options = cached(1, (0, 0), "halves")
    model = load(model_of("GroupQueryAttention", given, ["y", "present_k", "present_v"], **options))
    kept = model.with_state({"past_k": "present_k", "past_v": "present_v"})
    assert kept.names == ("y",) and len(kept.inputs) == len(model.inputs) - 2
    step, apart = kept.compile(), model.compile()
    assert all(source.op.writes for source in step.compiled.sources)
    values = {name: x for name, x in given.items() if x is not None}
    values |= {"past_k": np.zeros_like(values["past_k"]), "past_v": np.zeros_like(values["past_v"])}
    for token in range(4):
        values |= {name: floats(*values[name].shape) for name in "qkv"} | {"last": np.full(B, token, "i4")}
        want, values["past_k"], values["past_v"] = apart(**{x.name: values[x.name] for x in model.inputs})
        (got,) = step(**{x.name: values[x.name] for x in kept.inputs})
        assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("state", [{"past": "y"}, {"q": "present"}, {"past_k": "y"}], ids=str)
def test_a_state_that_does_not_fit_is_refused(state):
    given, options = cached(1, (0, 0))
    with pytest.raises(FormatError, match="state"):
        load(model_of("GroupQueryAttention", given, ["y", "present_k", "present_v"], **options)).with_state(state)


def test_the_command_line_keeps_a_state(tmp_path, capsys):
    values = [helper.make_tensor_value_info(name, 1, (3,)) for name in ("x", "total", "sum", "shown")]
    nodes = [helper.make_node("Add", ["x", "total"], ["sum"]), helper.make_node("Identity", ["sum"], ["shown"])]
    graph, imports = helper.make_graph(nodes, "g", values[:2], values[2:]), [helper.make_opsetid("", 21)]
    net, kept = tmp_path / "net.onnx", tmp_path / "y.npz"
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10), net)
    np.save(tmp_path / "x.npy", np.array([1, 2, 3], "f4"))
    options = ["--state", "total=sum", "--times", "4", "--save", str(kept)]
    assert main(["run", str(net), "-i", str(tmp_path / "x.npy"), *options]) == 0
    with np.load(kept) as found:
        assert found.files == ["shown"] and found["shown"].tolist() == [4, 8, 12]
    assert main(["run", str(net), "-i", str(tmp_path / "x.npy"), "--state", "total=other"]) == 2
    assert "there is no 'other'" in capsys.readouterr().err


def test_the_norm_of_a_sum_without_a_shift():
    for bias in (None, floats(8)):
        given = {"x": floats(2, 3, 8), "skip": floats(2, 3, 8), "scale": floats(8), "shift": None, "bias": bias}
        got, want = both("SkipLayerNormalization", given, ["y", "", "", "sum"], domain="com.microsoft", epsilon=0.3)
        for name in want:
            assert_close(got[name], want[name])


def test_an_empty_past_is_none():
    given, options = cached(6, (0, 0), "halves")
    given |= {"past_k": None, "past_v": None, "total": np.array(6, "i4")}
    empty = given | {"past_k": floats(B, G, 0, D), "past_v": floats(B, G, 0, D)}
    names = ["y", "present_k", "present_v"]
    results = []
    for values in (given, empty):
        model = load(model_of("GroupQueryAttention", values, names, **options))
        results.append(model.compile()(**{x.name: values[x.name] for x in model.inputs}))
    for got, want in zip(*results, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("shape", [(2, 5, 32), (2, 4, 5, 8)], ids=str)
@pytest.mark.parametrize("pairs", [0, 1])
def test_a_part_of_each_head_is_rotated(shape, pairs):
    angles = np.arange(10)[:, None] / 10 ** np.arange(2)
    x, places = floats(*shape), np.array([[0, 1, 2, 3, 4], [7, 6, 5, 4, 3]])
    given = {"x": x, "places": places, "c": np.cos(angles).astype("f4"), "s": np.sin(angles).astype("f4")}
    options = {"interleaved": pairs, "rotary_embedding_dim": 4, "num_heads": 4, "domain": "com.microsoft"}
    model = load(model_of("RotaryEmbedding", given, ["y"], **options))
    (got,) = model.compile()(**{v.name: given[v.name] for v in model.inputs})
    heads = (x if x.ndim == 4 else x.reshape(2, 5, 4, 8).transpose(0, 2, 1, 3)).astype("f8")
    part, turns = heads[..., :4], np.exp(1j * angles[places])[:, None]
    a, b = (part[..., 0::2], part[..., 1::2]) if pairs else (part[..., :2], part[..., 2:])
    turned = (a + 1j * b) * turns
    whole = heads.copy()
    whole[..., :4] = np.stack([turned.real, turned.imag], -1 if pairs else -2).reshape(part.shape)
    assert_close(got, (whole if x.ndim == 4 else whole.transpose(0, 2, 1, 3).reshape(x.shape)).astype("f4"))


@pytest.mark.parametrize("operand", [10, 13])
def test_operands_behind_the_last_that_is_read_are_refused(operand):
    given, options = cached(1, (5, 9))
    given |= {f"more{i}": floats(2) if i == operand else None for i in range(9, operand + 1)}
    with pytest.raises(FormatError, match=f"operand {operand} is not supported"):
        load(model_of("GroupQueryAttention", given, ["y"], **options))


@pytest.mark.parametrize(
    ("attributes", "operands", "named"),
    [
        ({"smooth_softmax": 1}, (), "smooth_softmax"),
        ({"qk_output": 1, "smooth_softmax": 1}, (), "smooth_softmax"),
        ({"v_quant_type": "PER_TENSOR"}, (11,), "v_quant_type"),
        ({"k_quant_type": "NONE", "v_quant_type": "NONE", "qk_output": 0, "smooth_softmax": 0}, (12, 13), "operand 12"),
    ],
)
def test_the_first_of_what_is_not_supported_is_named(attributes, operands, named):
    given, options = cached(1, (5, 9), **attributes)
    given |= {f"more{i}": floats(2) if i in operands else None for i in range(9, 14)}
    with pytest.raises(FormatError, match=f"{named} is not supported"):
        load(model_of("GroupQueryAttention", given, ["y"], **options))


@pytest.mark.parametrize("unread", [1, 2])
def test_statistics_of_a_norm_of_a_sum_are_refused(unread):
    given = {"x": floats(2, 3, 8), "skip": floats(2, 3, 8), "scale": floats(8), "shift": floats(8)}
    outputs = ["y", "", "", "sum"]
    outputs[unread] = "statistics"
    with pytest.raises(FormatError, match="the outputs mean and inv_std_var are not supported. Remove them"):
        load(model_of("SkipLayerNormalization", given, outputs, domain="com.microsoft"))


@pytest.mark.parametrize("places", [np.array([3]), np.array([[0, 1, 2, 3, 4], [7, 6, 5, 4, 3]])], ids=["one", "each"])
def test_heads_of_a_rotation_follow_from_the_tables_or_the_size(places):
    """As many as fit; the size is that of a head where no number of heads is given."""
    angles = np.arange(10)[:, None] / 10 ** np.arange(4)
    given = {"x": floats(2, 5, 32), "places": places}
    given |= {"c": np.cos(angles).astype("f4"), "s": np.sin(angles).astype("f4")}
    results = []
    for options in ({}, {"rotary_embedding_dim": 8}, {"num_heads": 4}, {"num_heads": 4, "rotary_embedding_dim": 8}):
        model = load(model_of("RotaryEmbedding", given, ["y"], domain="com.microsoft", **options))
        results.append(model.compile()(**{v.name: given[v.name] for v in model.inputs})[0])
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)
    assert np.abs(results[0] - given["x"]).max() > 0.1
