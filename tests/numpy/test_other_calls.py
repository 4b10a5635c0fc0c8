"""Variants of the calls of the table give what NumPy gives, or are refused as NumPy refuses them.

A variant leaves out an option, takes one of another call, other words or shorter lists, exchanges two operands, gives
one operand another dtype, or has one node among arrays.

`EXCEPTIONS` lists the calls that differ, with reasons.
"""

import ast
import re
from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np
import pytest

import cgraph as cg
from tests.numpy.calls import CALLS, operands
from tests.numpy.test_other_operands import WAYS, finite, outcome_of, with_other_numbers

EXCEPTIONS: list[tuple[str, str, str, str]] = [
    # way, outcome, calls, reason
    ("an option", "accepted", r"np.clip\((a, 0.2|i, 1)\)", "one bound may be left out"),
    (
        "an option|exchanged",
        "accepted",
        r"ravel_multi_index|np.digitize|np.histogram",
        "NumPy's refusal depends on values",
    ),
    ("an option", "refused", r"np.polyint\(a, k=", "NumPy does not see a constant too many"),
    ("other words", "accepted", "order='float64'", "the order in memory is ignored"),
    ("other words", "refused", "reflect_type=", "NumPy takes any other word for 'even'"),
    ("exchanged", "refused", "np.polyfit", "positions are real"),
    ("shorter lists", "accepted", "np.unravel_index", "NumPy's refusal depends on values"),
    ("shorter lists", "accepted", r"a\[np.array\(\[\]\)\]", "no position has a dtype"),
    ("shorter lists", "refused", r"np.fft|reduceat", "there is no axis, or no part"),
    ("int16|uint32", "accepted", "np.quantile|ravel_multi_index", "NumPy's refusal depends on values"),
    ("int16|uint32", "different", "np.gradient", "two places are equal: infinity or NaN"),
    ("float32", "different", "np.quantile|np.gradient|np.polyfit", "NumPy computes a part of it in float32"),
    ("together", "different", r"np.cov\(M, .*weights", "NumPy's weights are float64"),
    ("together", "accepted", r"pad\(a, 0|rcond=a", "nothing is padded, or the result has one matrix for each"),
    (
        "together",
        "refused",
        r"like=|dtype=|np.cov|np.corrcoef",
        "a condition is a node; complex numbers do not become real",
    ),
    ("zeros|integers", "refused", "stat_length=0|sliding_window|np.cov|polymul|polyint", "there is no element"),
    ("zeros|integers", "refused", "edge_order=|ifftshift", "a mistake that NumPy does not see"),
    ("zeros|integers", "different", "np.linspace.*retstep|np.reciprocal", "a division by 0"),
    ("zeros|integers", "different", "np.emath|pinv", "NumPy's dtype depends on values, or on the number of elements"),
    ("zeros|integers", "accepted", "ravel_(multi_)?index|np.nanarg", "NumPy's refusal depends on values"),
    ("integers", "refused", r"shape[(=]|ravel_multi_index\(.*-", "NumPy takes any negative length for an unknown one"),
    ("integers", "different", r"argsort\(|argpartition\(", "the order of equal elements is open"),
    ("complex64", "accepted|different", "np.polyfit", "NumPy multiplies weights in the dtype of the values"),
    ("complex64", "refused", "geomspace|searchsorted|interp|gradient|histogram|polyfit", "places are real"),
    ("complex64", "refused", "insert|np.cov|unsafe|dtype='float32'", "complex numbers do not become real"),
    ("node", "refused", r"^(a\.dot|a\[|[MZ]\[|np.take)", "an array's own method or index cannot take a node"),
    ("node", "refused", "pinv", "an array takes no node as its tolerance"),
    ("node", "refused", r"np.nan\w+\(np.where\(M", "NumPy's own function reads the mask"),
]

ARRAYS = operands()
NODES = {name: cg.Var(x.shape, x.dtype, name).assign(x) for name, x in ARRAYS.items()}


def calls_in(tree: ast.AST) -> list[ast.Call]:
    return [x for x in ast.walk(tree) if isinstance(x, ast.Call)]


def without_an_option(call: str) -> Iterator[str]:
    """Return a call without each of its keywords in turn, and without the last of its plain arguments."""
    tree = ast.parse(call, mode="eval")
    for x in calls_in(tree):
        keywords, args = x.keywords, x.args
        for i in range(len(keywords)):
            x.keywords = keywords[:i] + keywords[i + 1 :]
            yield ast.unparse(tree)
        x.keywords = keywords
        if len(args) > 1 and not names_in(args[-1]):
            x.args = args[:-1]
            yield ast.unparse(tree)
        x.args = args


def words_of_functions() -> dict[str, list[str]]:
    """Return the strings that the calls of each function have."""
    words: dict[str, list[str]] = {}
    for call in CALLS:
        for x in calls_in(ast.parse(call)):
            mine = [v.value for v in ast.walk(x) if isinstance(v, ast.Constant) and isinstance(v.value, str)]
            words.setdefault(ast.unparse(x.func), []).extend(mine)
    return {name: sorted({*found}) for name, found in words.items()}


WORDS = words_of_functions()


def options_of_functions() -> dict[str, dict[str, list[str]]]:
    """Return the keywords that the calls of each function have, with their values as text."""
    options: dict[str, dict[str, list[str]]] = {}
    for x in (x for call in CALLS for x in calls_in(ast.parse(call))):
        for keyword in (k for k in x.keywords if k.arg):
            values = options.setdefault(ast.unparse(x.func), {}).setdefault(keyword.arg, [])
            values.append(ast.unparse(keyword.value))
    return {name: {key: sorted({*values}) for key, values in found.items()} for name, found in options.items()}


OPTIONS = options_of_functions()


def with_an_option_of_another_call(call: str) -> Iterator[str]:
    """Return a call with each keyword that it does not have and another call of the same function has."""
    tree = ast.parse(call, mode="eval")
    for x in calls_in(tree):
        own = x.keywords
        others = OPTIONS.get(ast.unparse(x.func), {})
        for name, values in others.items():
            if name not in [k.arg for k in own]:
                for value in values:
                    x.keywords = [*own, ast.keyword(name, ast.parse(value, mode="eval").body)]
                    yield ast.unparse(tree)
        x.keywords = own


def with_other_words(call: str) -> Iterator[str]:
    """Return a call with each of its strings replaced by each other one of the same function."""
    tree = ast.parse(call, mode="eval")
    for x in calls_in(tree):
        places = [v for v in (*x.args, *(k.value for k in x.keywords)) if isinstance(v, ast.Constant)]
        for place in [v for v in places if isinstance(v.value, str)]:
            own = place.value
            for place.value in WORDS[ast.unparse(x.func)]:
                yield ast.unparse(tree)
            place.value = own


def with_shorter_lists(call: str) -> Iterator[str]:
    """Return a call with each of its lists and tuples without its last element, and empty."""
    tree = ast.parse(call, mode="eval")
    for x in [x for x in ast.walk(tree) if isinstance(x, ast.List | ast.Tuple)]:
        own = x.elts
        for x.elts in (own[:-1], []):
            yield ast.unparse(tree)
        x.elts = own


def with_zeros(call: str) -> Iterator[str]:
    """Return a call with each of its integers replaced by 0 in turn."""
    tree = ast.parse(call, mode="eval")
    for x in [x for x in ast.walk(tree) if isinstance(x, ast.Constant) and type(x.value) is int]:
        own, x.value = x.value, 0
        yield ast.unparse(tree)
        x.value = own


def names_in(tree: ast.AST) -> list[str]:
    """Return the operands that a call names, in their order."""
    return list(dict.fromkeys(x.id for x in ast.walk(tree) if isinstance(x, ast.Name) and x.id in ARRAYS))


def with_operands_exchanged(call: str) -> Iterator[str]:
    """Return a call with each two of its operands in each other's place."""
    for one, other in combinations(names_in(ast.parse(call)), 2):
        new = {one: other, other: one}
        yield re.sub(rf"\b({one}|{other})\b(?!['\"(=])", lambda found, new=new: new[found[0]], call)


DTYPES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "int16": lambda x: finite(x.real * 9).astype("int16"),
    "uint32": lambda x: finite(abs(x.real) * 9).astype("uint32"),
    "float32": lambda x: x.real.astype("float32"),
    "complex64": lambda x: x.astype("complex64"),
}


def wrong_of(way: str, outcomes: Iterator[tuple[str, str]]) -> list[str]:
    """Return the calls that neither give what NumPy gives nor are exceptions."""
    listed = [(kinds, calls) for ways, kinds, calls, _ in EXCEPTIONS if re.search(ways, way)]
    return [
        f"{call}: {found}"
        for call, found in outcomes
        if found not in ("same", "both refused")
        and not any(re.fullmatch(kinds, found) and re.search(calls, call) for kinds, calls in listed)
    ]


VARIANTS = {
    "with shorter lists": with_shorter_lists,
    "together with an option": with_an_option_of_another_call,
    "without an option": without_an_option,
    "with other words": with_other_words,
    "with zeros": with_zeros,
    "with two operands exchanged": with_operands_exchanged,
}


@pytest.mark.parametrize("way", VARIANTS)
def test_other_calls_give_what_numpy_gives(way):
    calls = dict.fromkeys(x for call in CALLS for x in VARIANTS[way](call))
    others = [call for call in calls if call not in CALLS]
    assert len(others) > 280
    wrong = wrong_of(way, ((call, outcome_of(call, ARRAYS, NODES)) for call in others))
    assert not wrong, "\n".join(wrong)


def operands_of_several() -> Iterator[tuple[str, str]]:
    """Return the calls of more than one operand, with each of these."""
    for call in CALLS:
        names = names_in(ast.parse(call))
        yield from ((call, name) for name in names if len(names) > 1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_operand_of_another_dtype_gives_what_numpy_gives(dtype):
    others = {name: DTYPES[dtype](x) for name, x in ARRAYS.items() if name != "yes"}
    nodes = {name: cg.Var(x.shape, x.dtype, name).assign(x) for name, x in others.items()}
    cases = [(call, name) for call, name in operands_of_several() if name in others]
    outcomes = (
        (call, outcome_of(call, ARRAYS | {name: others[name]}, NODES | {name: nodes[name]})) for call, name in cases
    )
    wrong = wrong_of(dtype, outcomes)
    assert not wrong, "\n".join(wrong)


def test_one_node_among_arrays_gives_what_numpy_gives():
    outcomes = ((call, outcome_of(call, ARRAYS, ARRAYS | {name: NODES[name]})) for call, name in operands_of_several())
    wrong = wrong_of("one node", outcomes)
    assert not wrong, "\n".join(wrong)


def test_other_numbers_with_integers_as_operands_give_what_numpy_gives():
    arrays = WAYS["int32"](ARRAYS)
    nodes = {name: cg.Var(x.shape, x.dtype, name).assign(x) for name, x in arrays.items()}
    calls = dict.fromkeys(x for call in CALLS for x in (*with_other_numbers(call), *with_zeros(call)))
    wrong = wrong_of("integers", ((call, outcome_of(call, arrays, nodes)) for call in calls if call not in CALLS))
    assert not wrong, "\n".join(wrong)
