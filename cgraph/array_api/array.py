"""The array of the standard: a node until its value is needed, a value from then on."""

import operator
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import ref

import numpy as np

from cgraph.array_api.values import ARRAYS, compute, leaf
from cgraph.ir.graph import Node
from cgraph.storage.cell import shareable

MOST_NODES = 256  # number of pending nodes; a loop of ``x = x + 1`` is run in pieces of this size
VERSIONS = (None, "2021.12", "2022.12", "2023.12", "2024.12")


class Array:
    """An array that is computed when its value is needed. Mutable: it gets its value once, and ``x[i] = v`` rebinds
    it.

    Fields
        _node: the node that computes it; None once there is a value
        _value: its value; None until it is needed; never written
        _was: its former node, while that is alive
        _leaf: the node that contains its value; stored, because the next graph begins with it too
        _count: upper bound of the nodes of its graph that have not been run
    """

    _node: Node | None
    _value: np.ndarray | None
    _leaf: Node | None
    _was: "ref[Node] | None"

    __slots__ = ("__weakref__", "_count", "_leaf", "_node", "_value", "_was")

    def __init__(self, node: Node | None, value: np.ndarray | None = None, count: int = 1) -> None:
        self.rebind(node, value, count)

    def rebind(self, node: Node | None, value: np.ndarray | None, count: int = 1) -> None:
        """Become another node or another value."""
        self._node, self._value, self._count, self._was, self._leaf = node, value, count, None, None
        if node is not None:
            self._was = ref(node)
            ARRAYS[id(node)] = self
            if count > MOST_NODES:
                compute(self)

    def settle(self, value: np.ndarray) -> None:
        """Take this value and drop the node. A NumPy scalar becomes an array of rank 0, which can be exported."""
        self._node, self._value, self._count = None, np.asarray(value), 1

    @property
    def is_lazy(self) -> bool:
        return self._value is None

    def is_of(self, node: Node) -> bool:
        """Return True if this is, or was, the array of a node."""
        return self._was is not None and self._was() is node

    @property
    def node(self) -> Node:
        """The node of this array. After the value was computed it is a leaf that holds the value."""
        if self._node is not None:
            return self._node
        alive = self._was() if self._was is not None else None
        if alive is None:
            alive = self._leaf = leaf(self._value)  # type: ignore[arg-type]
            self._was = ref(alive)
            ARRAYS[id(alive)] = self
        return alive

    @property
    def value(self) -> np.ndarray:
        """The value, computed now if necessary. Do not write it."""
        if self._value is None:
            compute(self)
        return self._value  # type: ignore[return-value]

    @property
    def count(self) -> int:
        return self._count

    # -- attributes ------------------------------------------------------------------------------------------------
    @property
    def _source(self) -> Any:
        return self._node if self._value is None else self._value

    @property
    def dtype(self) -> np.dtype:
        return self._source.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._source.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(self._source.size)

    @property
    def device(self) -> str:
        return "cpu"

    def to_device(self, device: Any, /, *, stream: Any = None) -> "Array":
        """Return the array itself: there is one device."""
        if device != "cpu" or stream is not None:
            raise ValueError(f"there is no device {device!r} and no stream. Use device='cpu'")
        return self

    def __repr__(self) -> str:
        return f"Array({np.array2string(self.value, separator=', ')}, dtype={self.dtype})"

    def __len__(self) -> int:
        return len(self.value)

    # -- set by `cgraph.array_api.operators` -----------------------------------------------------------------------
    if TYPE_CHECKING:
        T: "Array"
        mT: "Array"
        __hash__: ClassVar[None]  # type: ignore[assignment]

        def __array_namespace__(self, /, *, api_version: str | None = None) -> Any: ...
        def __getitem__(self, key: Any, /) -> "Array": ...
        def __setitem__(self, key: Any, value: Any, /) -> None: ...
        def __eq__(self, other: Any, /) -> "Array": ...  # type: ignore[override]
        def __ne__(self, other: Any, /) -> "Array": ...  # type: ignore[override]
        def _of_two(self, other: Any, /) -> "Array": ...
        def _of_one(self, /) -> "Array": ...

        __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __matmul__ = _of_two
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rmatmul__ = _of_two
        __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = __ipow__ = __imatmul__ = _of_two
        __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = __lt__ = __le__ = __gt__ = __ge__ = _of_two
        __rand__ = __ror__ = __rxor__ = __rlshift__ = __rrshift__ = _of_two
        __iand__ = __ior__ = __ixor__ = __ilshift__ = __irshift__ = _of_two
        __neg__ = __abs__ = __invert__ = __pos__ = _of_one

    # -- protocols of other libraries ------------------------------------------------------------------------------
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.value, dtype=dtype, copy=copy)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        """Export the value in place; a read-only or reversed array is copied, since other libraries misread or write
        it."""
        value = shareable(self.value)
        if copy is False and value is not self.value:
            raise BufferError(
                "a read-only array, or one that runs backwards, is exported as a copy only. Pass copy=None or copy=True"
            )
        return value.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __complex__(self) -> complex:
        return complex(self.value)

    def __index__(self) -> int:
        return operator.index(self.value)
