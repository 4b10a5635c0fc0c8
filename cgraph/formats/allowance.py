"""Allowance: a bound on the memory, work and nodes of reading one file, in proportion to its size.

Code that creates arrays, computes values or adds nodes while it reads a file calls `spend` first. So a small file that
describes something huge is refused before anything huge exists.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from cgraph.errors import FormatError, bytes_text

NBYTES, NBYTES_AT_LEAST = 2, 64 << 20  # bytes in memory for each byte of the file, and bytes in addition
WORK, WORK_AT_LEAST = 64, 1 << 28  # elements computed
NODES, NODES_AT_LEAST = 1 / 256, 50_000  # nodes of a graph
NODE = 650  # bytes in memory of a node


class Allowance:
    """The remaining allowance of one file. Changes: each `spend` lowers it.

    Parameters
        file_nbytes: bytes of the file and of the files that belong to it
    """

    def __init__(self, file_nbytes: int) -> None:
        self.file_nbytes = 0
        self.nbytes, self.work, self.nodes = NBYTES_AT_LEAST, WORK_AT_LEAST, NODES_AT_LEAST
        self.grow(file_nbytes)

    def grow(self, file_nbytes: int) -> None:
        """Add the allowance of another file that belongs to this one."""
        self.file_nbytes += file_nbytes
        self.nbytes += NBYTES * file_nbytes
        self.work += WORK * file_nbytes
        self.nodes += int(NODES * file_nbytes)

    def spend(self, what: str, nbytes: float = 0, work: float = 0, nodes: float = 0) -> None:
        """Charge something that is about to be created.

        Parameters
            what: its name, for the message
            nbytes: bytes of memory
            work: elements to compute
            nodes: nodes to add to the graph
        Raises
            FormatError: the cost exceeds the rest of the allowance
        """
        nbytes += NODE * nodes
        self.check(what, nodes, self.nodes, "nodes")
        self.check(what, work, self.work, "computed elements")
        self.check(what, nbytes, self.nbytes, "bytes")
        self.nbytes -= int(nbytes)
        self.work -= int(work)
        self.nodes -= int(nodes)

    @contextmanager
    def scratch(self) -> Iterator[None]:
        """Count the bytes that are charged within the context as freed at its end; the work remains charged."""
        left = self.nbytes - NBYTES * self.file_nbytes
        yield
        self.nbytes = left + NBYTES * self.file_nbytes  # files that were opened meanwhile added their share

    def check(self, what: str, cost: float, left: int, unit: str) -> None:
        """Raise FormatError unless a cost is within the rest of the allowance; NaN is not."""
        if not cost <= left:
            raise FormatError(
                f"{what} would take {cost:,.0f} {unit} while reading; {left:,} are left of what a file of "
                f"{bytes_text(self.file_nbytes)} may cost. Check the sizes that the file declares"
            )
