"""Greedy decoders as ONNX loops: caches of keys and values grow by Concat until a token ends the loop."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import helper, numpy_helper

from tests.support.onnx_open import info, node, numbers

WORDS, WIDTH, HEADS, LONGEST = 11, 12, 3, 40


def decoder(
    layers: int = 1,
    *,
    trips: str = "",
    axis: int = 2,
    position: str = "cache",
    ending: str = "token",
    caches: Sequence[int | str] = (0,),
    seed: int = 0,
    batch: int = 1,
    words: int = WORDS,
    width: int = WIDTH,
    heads: int = HEADS,
    longest: int = LONGEST,
) -> bytes:
    """A decoder of random weights with outputs ``ids [b, n]``, ``stack [n, b]``, ``scores [n, b, words]``, caches …

    Parameters
        trips: name of the trip count: none, ``huge`` (2**63 - 1), ``many`` (12) or the input ``n``
        axis: of the caches along which they grow, 0 to 3
        position: what gives the position of a token: the length of a ``cache``, a ``counter``, the number of the
            ``round`` or the length of the growing ``ids``
        ending: ``token`` ends the loop at the input ``last``; ``table`` also at the end of the table of positions;
            ``branch`` does so by an If
        longest: rows of the table of positions
        caches: initial length of the caches of each layer, or the name of an input's axis
    """
    size = width // heads
    rng = np.random.default_rng(seed)
    order = {0: (2, 0, 1, 3), 1: (0, 2, 1, 3), 2: (0, 1, 2, 3), 3: (0, 1, 3, 2)}[axis]  # from [b, h, t, d]
    constants: dict[str, Any] = {
        "words": rng.normal(size=(words, width)), "table": rng.normal(size=(longest, width)),
        "scale": np.float32(size**-0.5), "out": rng.normal(size=(width, words)),
    }  # fmt: skip
    integers = {
        "zero": numbers(0), "one": numbers(1), "one0": np.int64(1), "zero0": np.int64(0), "two": numbers(2),
        "axis1": numbers(1), "split": numbers(batch, 1, heads, size), "join": numbers(batch, 1, width),
        "end": np.int64(longest), "place": np.int64(axis),
        "huge": np.int64(2**63 - 1), "many": np.int64(12),
    }  # fmt: skip
    for i in range(layers):
        constants |= {f"w{name}{i}": rng.normal(size=(width, width)) / width**0.5 for name in "qkvo"}
    nodes = embedding(position)
    for i in range(layers):
        nodes += layer(i, axis, order)
    nodes += [*choice_of_a_word(layers), *end_of_the_loop(ending)]
    states = [f"{name}{i}" for i in range(layers) for name in "kv"]
    inputs = [info("first", "i8", (batch, 1)), info("last", "i8", ()), info("go", "?", ())]
    inputs += [info("n", "i8", ())] if trips == "n" else []
    for place, s in enumerate(states):
        rows = caches[place // 2 % len(caches)]
        shape = (batch, heads, rows, size)
        if isinstance(rows, str):
            inputs.append(helper.make_tensor_value_info(f"start_{s}", 1, [shape[a] for a in order]))
        else:
            constants[f"start_{s}"] = rng.normal(size=shape).transpose(order)
    names = ["final_t", "final_token", "all_ids", *(f"final_{s}" for s in states), "stack", "scores"]
    body = body_of(nodes, states, batch, words)
    loop = node("Loop", [trips, "go", "zero0", "first", "first", *(f"start_{s}" for s in states)], names, body=body)
    graph = helper.make_graph(
        [loop], "g", inputs,
        [helper.make_empty_tensor_value_info(name) for name in names],
        [numpy_helper.from_array(np.ascontiguousarray(x, "f4"), name) for name, x in constants.items()]
        + [numpy_helper.from_array(x, name) for name, x in integers.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def embedding(position: str) -> list[Any]:
    """The nodes of a token's row ``x0 [b, 1, width]``: its word and its position."""
    nodes = [node("Gather", ["words", "token"], ["word"])]  # [b, 1, width]
    length = {"cache": "k0", "ids": "ids"}.get(position)
    if length:
        nodes += [node("Shape", [length], ["shape"])]
        nodes += [node("Gather", ["shape", "place" if position == "cache" else "one0"], ["at0"], axis=0)]
    nodes += [node("Unsqueeze", [{"counter": "t", "round": "i"}.get(position, "at0"), "zero"], ["at"])]
    nodes += [node("Add", ["at", "one"], ["after"]), node("Slice", ["table", "at", "after", "zero"], ["row"])]
    return [*nodes, node("Add", ["word", "row"], ["x0"])]


def layer(i: int, axis: int, order: tuple[int, ...]) -> list[Any]:
    """The nodes from ``x{i}`` to ``x{i + 1}``: attention to the keys and values of a cache, which grows by a row.

    Parameters
        axis: of the caches along which they grow
        order: axes of a cache, from ``[b, h, t, d]``
    """
    back, nodes = tuple(int(a) for a in np.argsort(order)), []
    for name in "qkv":
        nodes += [
            node("MatMul", [f"x{i}", f"w{name}{i}"], [f"{name}a{i}"]),
            node("Reshape", [f"{name}a{i}", "split"], [f"{name}b{i}"]),
            node("Transpose", [f"{name}b{i}"], [f"{name}c{i}"], perm=(0, 2, 1, 3)),
        ]
    for name in "kv":
        nodes += [
            node("Transpose", [f"{name}c{i}"], [f"{name}d{i}"], perm=order),
            node("Concat", [f"{name}{i}", f"{name}d{i}"], [f"new_{name}{i}"], axis=axis),
            node("Transpose", [f"new_{name}{i}"], [f"{name}e{i}"], perm=back),
        ]
    return [
        *nodes,
        node("Transpose", [f"ke{i}"], [f"kt{i}"], perm=(0, 1, 3, 2)),
        node("MatMul", [f"qc{i}", f"kt{i}"], [f"s{i}"]),
        node("Mul", [f"s{i}", "scale"], [f"scaled{i}"]),
        node("Softmax", [f"scaled{i}"], [f"p{i}"], axis=-1),
        node("MatMul", [f"p{i}", f"ve{i}"], [f"a{i}"]),
        node("Transpose", [f"a{i}"], [f"m{i}"], perm=(0, 2, 1, 3)),
        node("Reshape", [f"m{i}", "join"], [f"j{i}"]),
        node("MatMul", [f"j{i}", f"wo{i}"], [f"y{i}"]),
        node("Add", [f"x{i}", f"y{i}"], [f"x{i + 1}"]),
    ]


def choice_of_a_word(layers: int) -> list[Any]:
    """The nodes of the next token, and of ``more``: whether it is not yet the last one."""
    return [
        node("MatMul", [f"x{layers}", "out"], ["logits"]),
        node("ArgMax", ["logits"], ["next"], axis=-1, keepdims=0),  # [b, 1]
        node("Concat", ["ids", "next"], ["new_ids"], axis=1),
        node("Add", ["t", "one0"], ["new_t"]),
        node("Squeeze", ["next", "axis1"], ["stacked"]),
        node("Squeeze", ["logits", "axis1"], ["score"]),
        node("Equal", ["next", "last"], ["is_last"]),
        node("Cast", ["is_last"], ["is_last_number"], to=7),
        node("ReduceMin", ["is_last_number"], ["all_last"], keepdims=0),
        node("Equal", ["all_last", "zero0"], ["more"]),
    ]


def end_of_the_loop(ending: str) -> list[Any]:
    """The nodes of ``on``: whether the loop goes on."""
    if ending == "token":
        return [node("Identity", ["more"], ["on"])]
    inside = node("Less", ["new_t", "end"], ["inside"])
    if ending == "table":
        return [inside, node("And", ["inside", "more"], ["on"])]
    then = helper.make_graph([node("Identity", ["more"], ["m"])], "then", [], [info("m", "?", ())])
    other = helper.make_graph([node("Identity", ["inside"], ["o"])], "else", [], [info("o", "?", ())])
    return [inside, node("If", ["inside"], ["on"], then_branch=then, else_branch=other)]


def body_of(nodes: list[Any], states: Sequence[str], batch: int, words: int) -> Any:
    """The body of the loop: its states are a counter, the token, all tokens so far and the caches."""
    read = [info("i", "i8", ()), info("c", "?", ()), info("t", "i8", ()), info("token", "i8", None)]
    read += [info("ids", "i8", None), *(info(s, "f4", None) for s in states)]
    written = [info("on", "?", ()), info("new_t", "i8", ()), info("next", "i8", None), info("new_ids", "i8", None)]
    written += [*(info(f"new_{s}", "f4", None) for s in states), info("stacked", "i8", (batch,))]
    written += [info("score", "f4", (batch, words))]
    return helper.make_graph(nodes, "body", read, written)
