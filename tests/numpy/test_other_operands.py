"""Every call of the table with other operands and other numbers: what NumPy gives, or a refusal of what it refuses.

`EXCEPTIONS` lists the calls that differ, with reasons.
"""

import ast
import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import CgraphError
from tests.numpy.calls import CALLS, operands
from tests.numpy.evaluated import assert_same, called, values

Operands = dict[str, np.ndarray]


def other_floats(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Operands], Operands]:
    """Change the float operands only."""
    return lambda arrays: {name: change(x) if x.dtype.kind == "f" else x for name, x in arrays.items()}


def other_shapes(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Operands], Operands]:
    return lambda arrays: {name: np.asarray(change(x)) for name, x in arrays.items()}


def finite(x: np.ndarray) -> np.ndarray:
    return np.nan_to_num(x, posinf=5, neginf=-3)


def with_numbers(*numbers: float) -> Callable[[Operands], Operands]:
    """Put numbers among those of each float or complex operand."""

    def change(x: np.ndarray) -> np.ndarray:
        y = x.copy()
        for i, number in enumerate(numbers):
            y.flat[(5 * i + 1) % x.size] = number
        return y

    return lambda arrays: {name: change(x) if x.dtype.kind in "fc" else x for name, x in arrays.items()}


WAYS = {
    "NaN": with_numbers(np.nan),
    "infinities": with_numbers(np.inf, -np.inf),
    "zeros": with_numbers(-0.0, 0.0),
    "equal numbers": other_floats(lambda x: np.round(finite(x) * 3) / 2),
    "negative": other_floats(lambda x: -x),
    "of both signs": other_floats(lambda x: finite(x) - 0.5),
    "large": other_floats(lambda x: x * 1e200),
    "int8": other_floats(lambda x: finite((x - 0.5) * 200).astype("int8")),
    "int32": other_floats(lambda x: finite(x * 9).astype("int32")),
    "uint8": other_floats(lambda x: finite(abs(x) * 9).astype("uint8")),
    "bool": other_floats(lambda x: finite(x) > 0.5),
    "complex128": other_floats(lambda x: x + 0.5j * finite(x[::-1])),
    "one axis more": other_shapes(lambda x: np.stack([x, x[::-1]])),
    "one axis less": other_shapes(lambda x: x[0]),
    "axes of one": other_shapes(lambda x: x[tuple(slice(0, 1) for _ in x.shape)]),
    "first axis empty": other_shapes(lambda x: x[:0]),
    "last axis empty": other_shapes(lambda x: x[..., :0]),
}
EVEN, ODD = slice(None, None, 2), slice(1, None, 2)
HALVES = {
    "uint8": EVEN,
    "bool": ODD,
    "zeros": EVEN,
    "negative": ODD,
    "large": EVEN,
    "int8": ODD,
}  # for the sake of time
ENDLESS = "infinities|large"
"""Ways in which routines of LAPACK may not end."""
REAL = r"astype\([ab], 'float32'|dtype=.(float|int)32|a.astype|np.astype|geomspace|searchsorted|interp|gradient\(a, up"
EMPTY = "first axis empty|last axis empty"
EXCEPTIONS: list[tuple[str, str, str, str]] = [
    # way, outcome, calls, reason
    ("NaN|infinities|negative", "accepted", "np.digitize|histogram", "NumPy's refusal depends on values"),
    ("negative", "different", "np.digitize", "bins of a node rise"),
    ("infinities|negative|of both signs|int8", "accepted", "np.cov.*aweights", "NumPy's refusal depends on values"),
    ("infinities|equal numbers", "different", r"np.interp\(", "places do not rise, or are equal"),
    ("infinities", "different", r"np.quantile\(M|np.gradient\(M", "infinity less infinity, in another order"),
    ("infinities", "different", r"np.expm1\(z|np.round\(z", "an infinity times 0 in a complex product"),
    ("infinities", "different", r"Z @|M @ z|matvec|vecmat|matmul\(Z", "an infinity times 0 in a complex product"),
    ("zeros", "different", "np.polymul", "NumPy drops leading zeros"),
    ("equal numbers", "different", r"argsort\(", "the order of equal elements is open"),
    ("equal numbers|large", "different", r"np.gradient\(a, up", "two places are equal or far: infinity or NaN"),
    ("large", "different", "np.(std|var).*float32", "what float32 does not hold is converted at another time"),
    ("int8", "accepted", r"np.power\(a", "NumPy's refusal depends on values"),
    ("int8", "different", r"np.(sinh|cosh|exp2|expm1|spacing|heaviside)\(", "float32 stands for float16"),
    ("int8", "different", r"np.(quantile|percentile)\(C", "NumPy's differences of bytes wrap around"),
    ("negative", "different", r"np.emath", "NumPy's dtype depends on values"),
    ("int32|uint8", "different", r"argsort\(|argpartition\(", "the order of equal elements is open"),
    ("bool", "different", r"argpartition\(", "the order of equal elements is open"),
    ("int32|uint8", "different", r"np.gradient\(a, up", "two places are equal: infinity or NaN"),
    ("uint8|bool", "different", "np.spacing", "float32 stands for float16"),
    (f"uint8|{EMPTY}", "different", "np.emath", "NumPy's dtype depends on values"),
    (EMPTY, "different", r"unpackbits|np.fft.irfft\([zZ]", "NumPy reads memory that was not written"),
    ("bool", "different", "np.trapezoid", "sums of bool are numbers"),
    ("bool", "accepted", r"np.gradient|a.round\(1|ediff1d", "bool is converted to numbers"),
    ("uint8", "accepted", "ediff1d", "ends are converted"),
    ("complex128", "refused", "np.cov.*aweights=a", "NumPy drops the imaginary parts of weights"),
    (".*", "accepted", r"np.nanarg(max|min)|np.quantile\(a, b|np.average", "NumPy's refusal depends on values"),
    ("last axis empty", "accepted", r"np.cov\(M, aweights|np.median\(C, \(0, 1\)", "the result is empty or NaN"),
    ("one axis less", "accepted", r"np.poly(der|int)|fftshift|z.view", "an element is a row of one"),
    ("bool", "refused", "np.(quantile|percentile|histogram)", "quantiles and weights of bool have no order"),
    ("complex128", "refused", rf"np.real_if_close|histogram|polyfit|{REAL}", "complex numbers do not become real"),
    ("one axis more", "refused", "np.poly(add|sub)", "NumPy adds rows of polynomials by columns"),
    ("one axis less", "refused", r"cumulative_prod|reduce|tri[lu]|sort|np.cov|corrcoef", "there is no axis"),
    (EMPTY, "refused", "nan(quantile|percentile)|norm|rank|pinv|np.cov|corrcoef|polymul", "there is no element"),
]

ERRORS = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RuntimeError)


def outcome_of(call: str, arrays: Operands, nodes: dict[str, cg.Node]) -> str:
    """``same``, ``both refused``, ``different``, ``accepted`` where NumPy refuses, or ``refused`` where it does not."""
    try:
        want = called(call, arrays)
    except ERRORS:
        want = None
    try:
        got = values(called(call, nodes))
    except CgraphError:
        return "both refused" if want is None else "refused"
    except ERRORS as error:
        return "both refused" if want is None else repr(error)
    if want is None:
        return "accepted"
    try:
        assert len(got) == len(want)
        for x, y in zip(got, want):
            assert_same(x, y)
    except AssertionError:
        return "different"
    return "same"


@pytest.mark.parametrize("way", WAYS)
def test_other_operands_give_what_numpy_gives(way):
    arrays = WAYS[way](operands())
    nodes = {name: cg.Var(x.shape, x.dtype, name).assign(x) for name, x in arrays.items()}
    allowed = [(outcome, re.compile(calls)) for ways, outcome, calls, _ in EXCEPTIONS if re.fullmatch(ways, way)]
    wrong, same = [], 0
    for call in CALLS[HALVES.get(way, slice(None))]:
        if re.fullmatch(ENDLESS, way) and re.search("linalg|poly", call):
            continue
        outcome = outcome_of(call, arrays, nodes)
        same += outcome == "same"
        is_listed = any(outcome == kind and calls.search(call) for kind, calls in allowed)
        if outcome not in ("same", "both refused") and not is_listed:
            wrong.append(f"{call}: {outcome}")
    assert not wrong, "\n".join(wrong)
    assert same > 440


def others(value: object) -> list[object]:
    """Return other values of an option."""
    if isinstance(value, bool):
        return [not value]
    return (
        [value + 1, -value - 1] if isinstance(value, int) else [-value, 2 * value] if isinstance(value, float) else []
    )


def with_other_numbers(call: str) -> Iterator[str]:
    """Return a call with each of its numbers and bools replaced in turn."""
    tree = ast.parse(call, mode="eval")
    for x in [x for x in ast.walk(tree) if isinstance(x, ast.Constant)]:
        own = x.value
        for x.value in others(own):
            yield ast.unparse(tree)
        x.value = own


OTHER_NUMBERS = [
    ("different", r"np.reciprocal\(i", "a division by 0"),
    ("accepted", r"np.nanarg|np.ravel_multi_index\(\(i %", "NumPy's refusal depends on values"),
    ("refused", r"reshape\([^)]*-|shape=\(-", "NumPy takes any negative length for an unknown one"),
    ("refused", r"edge_order=-|ifftshift\(.*axes", "a mistake that NumPy does not see"),
    ("refused", r"ravel_multi_index\(.*-", "a negative length"),
]


@pytest.mark.parametrize("part", range(4))
def test_other_numbers_give_what_numpy_gives(part):
    arrays = operands()
    nodes = {name: cg.Var(x.shape, x.dtype, name).assign(x) for name, x in arrays.items()}
    wrong = []
    for call in dict.fromkeys(x for own in CALLS[part::4] for x in with_other_numbers(own)):
        outcome = outcome_of(call, arrays, nodes)
        is_listed = any(outcome == kind and re.search(calls, call) for kind, calls, _ in OTHER_NUMBERS)
        if outcome not in ("same", "both refused") and not is_listed:
            wrong.append(f"{call}: {outcome}")
    assert not wrong, "\n".join(wrong)
