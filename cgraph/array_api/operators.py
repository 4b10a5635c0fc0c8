"""Python's operators for `Array`, and its attributes that are functions of the namespace."""

from typing import Any

from cgraph.array_api.array import VERSIONS, Array
from cgraph.array_api.functions import FUNCTIONS
from cgraph.array_api.indexing import assign, get_item
from cgraph.ir.graph import COMPARISONS

TWO = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip
ONE = {"neg": "negative", "abs": "abs", "invert": "bitwise_invert", "pos": "positive"}
KINDS = {bool: "b", int: "iufc", float: "fc", complex: "fc"}
"""Python's numbers and the kinds of dtype with which they combine."""


def fits(x: Array, other: Any) -> bool:
    """Return True if an operator accepts this operand. TypeError for a number that the dtype cannot represent."""
    if isinstance(other, Array):
        return True
    if type(other) not in KINDS:
        return False
    if x.dtype.kind not in KINDS[type(other)]:
        raise TypeError(
            f"{x.dtype} cannot hold {other!r:.40}. Convert the array first, as with xp.astype(x, xp.float64)"
        )
    return True


def give(python: str, name: str) -> None:
    """Add one operator to Array: forward, reflected and in place."""
    f = FUNCTIONS[name]

    def forward(self: Array, other: Any, /) -> Any:
        return f(self, other) if fits(self, other) else NotImplemented

    def reflected(self: Array, other: Any, /) -> Any:
        return f(other, self) if fits(self, other) else NotImplemented

    def in_place(self: Array, other: Any, /) -> Any:
        value = f(self, other)
        if value.dtype != self.dtype or value.shape != self.shape:
            raise TypeError(
                f"{value.dtype}{list(value.shape)} does not fit into {self.dtype}{list(self.shape)}. Use x = x op y"
            )
        self.rebind(value.node, None, value.count) if value.is_lazy else self.rebind(None, value.value)
        return self

    setattr(Array, f"__{python}__", forward)
    if python in TWO:
        setattr(Array, f"__r{python}__", reflected)
        setattr(Array, f"__i{python}__", in_place)


def give_all(namespace: Any) -> None:
    """Add every operator, indexing and the namespace to Array."""
    for python, name in (TWO | COMPARISONS).items():
        give(python, name)
    for python, name in ONE.items():
        setattr(Array, f"__{python}__", lambda self, /, f=FUNCTIONS[name]: f(self))

    def array_namespace(self: Array, /, *, api_version: str | None = None) -> Any:
        if api_version not in VERSIONS:
            raise ValueError(f"there is no version {api_version!r} here; use {VERSIONS[-1]!r}")
        return namespace

    members: dict[str, Any] = {"__array_namespace__": array_namespace, "__getitem__": get_item, "__setitem__": assign}
    members |= {"T": property(lambda x: FUNCTIONS["permute_dims"](x, (1, 0)))}
    members |= {"mT": property(FUNCTIONS["matrix_transpose"]), "__hash__": None}
    for name, member in members.items():
        setattr(Array, name, member)
