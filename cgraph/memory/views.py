"""Views of values in the arena."""

from collections.abc import Iterator, Mapping

from cgraph.ir.graph import Node
from cgraph.kernels.kernel import ARENA, Pointer, View


class Places(Mapping[Node, View | tuple[View, ...]]):
    """Views with their addresses in the arena, each built at its first use: in a large graph most are used once.

    Parameters
        views: those of a layout
        starts: the first byte of each owner in the arena
    """

    def __init__(self, views: Mapping[Node, View | tuple[View, ...]], starts: Mapping[Node, int]) -> None:
        self._views, self._starts = views, starts

    def __getitem__(self, node: Node) -> View | tuple[View, ...]:
        view = self._views[node]
        return tuple(map(self._moved, view)) if isinstance(view, tuple) else self._moved(view)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)

    def _moved(self, view: View) -> View:
        base = view.at.base
        if not isinstance(base, Node) or base not in self._starts:
            return view
        return View(Pointer(ARENA, self._starts[base] + view.at.offset), view.shape, view.strides, view.dtype)
