"""What calls with one wrong argument answer: the message of their error, or dtypes and shapes of the results.

Each call of the tables of options is made with each of its numbers, texts and operands replaced in turn, and with each
keyword left out. `recorded_answers.txt` has a digest of the answers to each call. So many messages are not read when a
line of a check changes; the record says which calls answer otherwise.

``python -m tests.language.recorded_answers`` writes the record anew, and ``python -m tests.language.recorded_answers
TEXT`` prints all answers to the calls that contain TEXT.
"""

import ast
import hashlib
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import cgraph as cg
import nn
from cgraph.engine.reference import evaluate
from cgraph.errors import CgraphError
from tests.nn.test_layer_options import OPERANDS as LAYER_OPERANDS
from tests.nn.test_layer_options import ROWS as LAYER_ROWS
from tests.numpy.calls import CALLS
from tests.numpy.calls import operands as numpy_operands
from tests.ops.test_options import MEANINGS, OPERANDS, ROWS, key

RECORD = Path(__file__).with_suffix(".txt")
GENERAL = """
F(a, b)
F(a, y=b)
F(x=a, y=b)
F({"x": a, "y": b})
F({"x": a}, y=b)
F(a, b, copy=False)
F(a, b, out=[wide, room])
F()
F(a)
F(a, b, a)
F(a, x=a)
F(a, z=b)
F({"x": a, "z": b})
F({"x": a, "y": b}, x=a)
CPU(a, b)
CPU(a)
CPU(a, b, a)
CPU(a, z=b)
CPU(a, b, out=[wide, room])
CPU.run(["sum"], {"x": a, "y": b})
cg.compile([X + Y, X], [X, Y], threads=1, memory="greedy_by_size", order="depth_first", budget=4096)
cg.compile([X + Y, X], [X, Y], recompute=False, passes=True, winograd=False, bands=1, engine="cpu")
cg.compile({"sum": X + Y, "twice": X * 2}, [X, Y], weights_dtype="float16", precision="bf16")
cg.compile(X + STATE, [X], {STATE: STATE + 1}, freeze=(), changing=[X])
cg.compile(X + STATE, X, freeze=[STATE])
cg.gradient(cg.sum(X * STATE), [X, STATE])
cg.gradient(X * X, X, seed=X)
cg.jvp(X * STATE, [X, STATE], [a, room])
cg.jit(lambda u, n: u * n, static_argnums=1)(a, 2)
cg.jit(lambda u, n=3: u * n, static_argnames="n")(a, n=2)
cg.jit(lambda u, v: u + v, threads=1)(a, b)
cg.vmap(lambda u, v: u * v, in_axes=(0, None), out_axes=0)(a, b)
cg.vmap(lambda u, v: cg.sum(u) + v, in_axes=(1, 0), out_axes=0)(a, b)
cg.vmap(lambda u: {"p": u, "q": u + 1}, out_axes={"p": 0, "q": 1})(a)
cg.grad(lambda u, v: cg.sum(u * v), argnums=0)(a, b)
cg.grad(lambda u, v: (cg.sum(u * v), u), argnums=(0, 1), has_aux=True)(a, room)
cg.value_and_grad(lambda u, v: cg.sum(u * v), argnums=1)(a, room)
cg.Var((2, 3), "float32", "name").assign(a).value
cg.Var((3,), "int32").assign(b).value
cg.Const(a).spec
cg.eval(cg.Const(a) + b)
nn.Loader((rows, rows), 2, order="given", seed=3)
nn.Choice(temperature=0.5, top_k=3, top_p=0.75)
nn.Checkpoint("somewhere.json", best="loss", mode="min")
nn.Checkpoint("somewhere.json", steps=2, epochs=0.5)
nn.Checkpoint("somewhere.json", epochs=1.5)
nn.Early(patience=3, least=0.25, metric="loss", mode="min", restore=False)
nn.Below(0.25)
nn.Cache(2, 8)
nn.Mode(training=True, seed=3)
nn.Sample((2, 3), dtype="float32")
nn.Dropout(rate=0.5)
nn.AlphaDropout(rate=0.5)
nn.GaussianDropout(0.5)
nn.GaussianNoise(0.5)
nn.Reshape((3, 2))(N)
nn.Reshape((-1,))(N)
nn.Slice(1)(N)
nn.Embedding(7, 4)(W)
nn.Concatenate(axis=1)(N, N)
nn.Input((2, 3), dtype="float32")(N)
nn.Bidirectional(nn.GRU(3, 4), nn.GRU(3, 4))(N)
nn.SwiGLU(3, 4)(N)
nn.Parameter((2, 3), trained=True, name="weight").spec
nn.losses.cross_entropy(S, T)
nn.losses.CrossEntropy(weights=(1.0, 2.0, 0.5), smoothing=0.25)(S, T)
nn.losses.binary_cross_entropy(S, S)
nn.losses.hinge(S, S)
nn.losses.huber(S, S)
nn.losses.l1(S, S)
nn.losses.l2(S, S)
nn.losses.quadratic(S, S)
nn.metrics.top_k(2).part(S, T)
nn.metrics.accuracy().part(S, T)
nn.metrics.confusion(3).part(S, T)
nn.metrics.mean_iou(3).part(S, T)
nn.optim.Adam(beta1=0.9, beta2=0.99, eps=1e-08)
nn.optim.AdamW(beta1=0.9, beta2=0.99, eps=1e-08, decay=0.5)
nn.optim.Adagrad(eps=1e-08)
nn.optim.RMSprop(decay=0.9, eps=1e-08)
nn.optim.ClipL2(2.0)
nn.optim.ClipValue(-1.0, 2.0)
nn.optim.ConjugateDescent(restart=5)
rates(nn.optim.Const(rate=0.5))
rates(nn.optim.Cosine(0.5, 10, warmup=2, floor=0.25))
rates(nn.optim.Decay(0.5, 0.25))
rates(nn.optim.ExpDecay(0.5, 0.25))
nn.optim.Elastic(0.5, 0.25)
nn.optim.EqualAverage(start=3, every=2)
nn.optim.ExponentialAverage(decay=0.75, start=3)
nn.optim.L1(0.5)
nn.optim.L2(0.5)
nn.optim.Nesterov(share=0.75)
nn.optim.Standard(share=0.75)
nn.optim.Plateau(rate=0.5, factor=0.25, patience=3, least=0.25, lowest=0.125, metric="loss", mode="min")
rates(nn.optim.Schedule((0.5, 0.25)))
rates(nn.optim.Steps(0.5, (3, 6), factor=0.25, warmup=2))
rates(nn.optim.Trapezoid(0.5, 10, 2, 3))
nn.optim.Optimiser(nn.optim.Adam(), rate=0.5, momentum=nn.optim.Standard())
nn.init.Constant(0.5)((2, 3), rng).shape
nn.init.Gaussian(0.5, 0.25)((2, 3), rng).shape
nn.init.Uniform(-0.5, 0.25)((2, 3), rng).shape
nn.init.TruncatedNormal(0.5)((2, 3), rng).shape
nn.init.Orthogonal(0.5)((2, 3), rng).shape
nn.init.Identity(2.0)((3, 3), rng).tolist()
nn.init.Scaled(0.5, "mean", False)((2, 3), rng).shape
nn.init.fans((4, 3, 2))
"""
"""Calls of other entry points: Functions, `compile`, transformations, settings of a training."""
OTHER_OPERANDS = {
    "bool": lambda x: x.real > 0,
    "complex": lambda x: x.astype("complex64"),
    "integers": lambda x: x.real.astype("int16") if np.isfinite(x).all() else np.ones(x.shape, "int16"),
    "axis": lambda x: np.stack([x, x]),
    "number": lambda x: x.ravel()[0].reshape(()),
    "empty": lambda x: x[:0],
    "longer": lambda x: np.concatenate([x, x], -1),
}
"""Operands of other dtypes and shapes; their names are ``x_bool``."""
NUMBERED = re.compile(r" at 0x\w+|(?<=\bvar)\d+|(?<=recorded_answers.py:)\d+")
"""Parts of texts that differ from run to run: addresses, and numbers of nodes without a name."""


def with_others(operands: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return all operands, and each changed in each way."""
    arrays = dict(operands)
    for name, x in operands.items():
        for way, change in OTHER_OPERANDS.items():
            if x.ndim or way == "bool":
                arrays[f"{name}_{way}"] = np.asarray(change(x))
    return arrays


def variables(operands: dict[str, np.ndarray]) -> dict[str, cg.Node]:
    """Return Vars of all operands and of those that are changed."""
    return {name: cg.Var(x.shape, x.dtype, name) for name, x in with_others(operands).items()}


def rates(rate: Any) -> list[float]:
    """Return the rates of the first steps, few digits of each."""
    steps = [cg.Const(np.float32(n)) for n in range(13)]
    return [round(float(x), 3) for x in evaluate([rate.at(step) for step in steps])]


def general() -> dict[str, Any]:
    """Return the names of `GENERAL`."""
    x, y, state = cg.Var((2, 3), name="x"), cg.Var((3,), "int32", "y"), cg.Var((2, 3), name="state")
    outputs = {"sum": x + y, "twice": x * 2}
    arrays = {
        "a": np.arange(6, dtype="f4").reshape(2, 3),
        "b": np.array([1, 2, 4], "i4"),
        "room": np.ones((2, 3), "f4"),
        "wide": np.ones((2, 3)),
    }
    scores, targets = np.ones((4, 3), "f4"), np.array([0, 2, 1, 1], "i4")
    nodes = {"N": np.ones((5, 2, 3), "f4"), "W": np.ones((2, 5), "i4"), "S": scores, "T": targets}
    return {
        "cg": cg, "nn": nn, "X": x, "Y": y, "STATE": state.assign(np.zeros((2, 3), "f4")),
        "F": cg.compile(outputs, [x, y], engine="reference"), "CPU": cg.compile(outputs, [x, y], threads=1),
        "rates": rates, "rng": np.random.default_rng(0), "rows": np.arange(10.0).reshape(5, 2), **with_others(arrays),
        **variables(nodes),
    }  # fmt: skip


def others(value: Any) -> list[Any]:
    """Return other values of an option: neighbours, the other sign, too large ones, other words."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, -value - 1, 99, 0.5]
    if isinstance(value, float):
        return [-value, 0.0, 1e30, float("nan")]
    return ["other"] if isinstance(value, str) else [1] if value is None else []


def changed(call: str, nodes: dict[str, Any]) -> Iterator[str]:
    """Return a call with one of its literals, operands or keywords changed, each in turn."""
    tree = ast.parse(call, mode="eval")
    for x in list(ast.walk(tree)):
        if isinstance(x, ast.Constant):
            own = x.value
            for x.value in others(own):
                yield ast.unparse(tree)
            x.value = own
        elif isinstance(x, ast.Name) and x.id in nodes:
            own = x.id
            for x.id in (f"{own}_{way}" for way in OTHER_OPERANDS if f"{own}_{way}" in nodes):
                yield ast.unparse(tree)
            x.id = own
        elif isinstance(x, ast.Call):
            for i, keyword in enumerate(list(x.keywords)):
                x.keywords.pop(i)
                yield ast.unparse(tree)
                x.keywords.insert(i, keyword)


def specs_of(found: Any) -> str:
    """Return dtypes and shapes of nodes, arrays with their numbers, the class of a Function; others as they are."""
    if isinstance(found, tuple | list):
        return f"({', '.join(map(specs_of, found))})"
    if isinstance(found, dict):
        return f"({', '.join(f'{name}: {specs_of(x)}' for name, x in found.items())})"
    if isinstance(found, np.ndarray | np.generic):
        return f"{found.dtype}{found.tolist()}"
    return str(found.spec) if isinstance(found, cg.Node) else repr(found) if is_plain(found) else type(found).__name__


def is_plain(x: Any) -> bool:
    return not isinstance(x, cg.Function | nn.Layer)


def answer(call: str, names: dict[str, Any]) -> str:
    """Return what a call answers; of an error of Python or NumPy only its class."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return specs_of(eval(call, names))
    except CgraphError as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:  # what Python and NumPy say differs between their versions
        return type(error).__name__


def tables() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Return each call, the names in it, and its operands with others."""
    ops, plain, names = variables(OPERANDS), variables(numpy_operands()), general()
    for call in GENERAL.strip().split("\n"):
        yield call, names, {name: x for name, x in names.items() if isinstance(x, cg.Node | np.ndarray)}
    for call, _ in ROWS:
        yield call, MEANINGS | {"cg": cg, "key": key(), "upper": cg.Var((), "int64", "upper")} | ops, ops
    for call in CALLS[::6]:  # `tests/numpy/test_other_operands.py` compares the results of all
        yield call, {"np": np, **plain}, plain
    layers = variables(LAYER_OPERANDS)
    for layer, operand, _ in LAYER_ROWS:
        yield f"{layer}({operand})", {"nn": nn, "np": np, **layers}, layers


def answers(call: str, names: dict[str, Any], nodes: dict[str, Any]) -> list[str]:
    """Return a line for each changed call."""
    cases = dict.fromkeys(x for x in (call, *changed(call, nodes)))
    return [f"{x} -> {NUMBERED.sub('', answer(x, dict(names)))}" for x in cases]


def recorded() -> list[str]:
    """Return a line for each call: a digest of its answers, how many there are, and the call."""
    lines = []
    for call, names, nodes in tables():
        found = answers(call, names, nodes)
        digest = hashlib.sha256("\n".join(found).encode()).hexdigest()
        lines.append(f"{digest[:10]} {len(found)} {call}")
    return lines


if __name__ == "__main__":
    if len(sys.argv) > 1:
        for row in tables():
            if sys.argv[1] in row[0]:
                sys.stdout.write("\n".join([*answers(*row), ""]))
    else:
        RECORD.write_text("\n".join(recorded()) + "\n")
