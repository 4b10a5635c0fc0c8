"""NumPy's named results, typed as containing nodes."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cgraph.ir.graph import Node

    class EigResult(NamedTuple):
        eigenvalues: Node
        eigenvectors: Node

    class EighResult(NamedTuple):
        eigenvalues: Node
        eigenvectors: Node

    class QRResult(NamedTuple):
        Q: Node
        R: Node

    class SlogdetResult(NamedTuple):
        sign: Node
        logabsdet: Node

    class SVDResult(NamedTuple):
        U: Node
        S: Node
        Vh: Node
else:
    from numpy.linalg._linalg import EighResult, EigResult, QRResult, SlogdetResult, SVDResult  # noqa: F401
