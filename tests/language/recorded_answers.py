"""What calls with one wrong argument answer: the message of their error, or dtypes and shapes of the results.

Each call of the tables of options is made with each of its numbers, texts and operands replaced in turn, and with each
keyword left out. `recorded_answers.txt` has a digest of the answers to each call. Nobody reads so many messages when a
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
from cgraph.errors import CgraphError
from tests.nn.test_layer_options import OPERANDS as LAYER_OPERANDS
from tests.nn.test_layer_options import ROWS as LAYER_ROWS
from tests.numpy.calls import CALLS
from tests.numpy.calls import operands as numpy_operands
from tests.ops.test_options import MEANINGS, OPERANDS, ROWS, key

RECORD = Path(__file__).with_suffix(".txt")
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
NUMBERED = re.compile(r" at 0x\w+|(?<=\bvar)\d+")
"""Parts of texts that differ from run to run: addresses, and numbers of nodes without a name."""


def with_others(operands: dict[str, np.ndarray]) -> dict[str, cg.Node]:
    """Return Vars of all operands, and of each changed in each way."""
    nodes = {}
    for name, x in operands.items():
        nodes[name] = cg.Var(x.shape, x.dtype, name)
        for way, change in OTHER_OPERANDS.items():
            if x.ndim or way == "bool":
                other = np.asarray(change(x))
                nodes[f"{name}_{way}"] = cg.Var(other.shape, other.dtype, f"{name}_{way}")
    return nodes


def others(value: Any) -> list[Any]:
    """Return other values of an option: neighbours, the other sign, too large ones, other words."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, -value - 1, 99, 0.5]
    if isinstance(value, float):
        return [-value, 0.0, 1e30, float("nan")]
    return ["other"] if isinstance(value, str) else [1] if value is None else []


def changed(call: str, nodes: dict[str, cg.Node]) -> Iterator[str]:
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
    """Return dtypes and shapes of nodes; other values as they are."""
    if isinstance(found, tuple | list):
        return f"({', '.join(map(specs_of, found))})"
    return str(found.spec) if isinstance(found, cg.Node) else repr(found)


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


def tables() -> Iterator[tuple[str, dict[str, Any], dict[str, cg.Node]]]:
    """Return each call, the names in it, and its operands with others."""
    ops, plain = with_others(OPERANDS), with_others(numpy_operands())
    for call, _ in ROWS:
        yield call, MEANINGS | {"cg": cg, "key": key(), "upper": cg.Var((), "int64", "upper")} | ops, ops
    for call in CALLS[::6]:  # `tests/numpy/test_other_operands.py` compares the results of all
        yield call, {"np": np, **plain}, plain
    layers = with_others(LAYER_OPERANDS)
    for layer, operand, _ in LAYER_ROWS:
        yield f"{layer}({operand})", {"nn": nn, "np": np, **layers}, layers


def answers(call: str, names: dict[str, Any], nodes: dict[str, cg.Node]) -> list[str]:
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
