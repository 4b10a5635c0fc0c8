"""The numbers of a report, as records and as JSON."""

import json
from typing import Any

from cgraph.planning.mixed_precision import MixedPrecision
from cgraph.record import Record


class StepRow(Record):
    """One step: its op, the bytes it writes, the bytes of the arena in use meanwhile, and its time if measured."""

    step: int
    op: str
    spec: str
    where: str
    nbytes: int
    in_use: int
    seconds: float | None = None


class Alive(Record):
    """Bytes in use at the peak, and the values in them."""

    nbytes: int
    name: str
    where: str


class Kernels(Record):
    """Counts of the kernels that run the steps.

    Fields
        kernels, calls: different kernels, and calls of them, in the Function
        loaded, compiled, compile_seconds: of this process so far: kernels read from the disk; kernels compiled, and the
            time that took
    """

    kernels: int
    calls: int
    loaded: int
    compiled: int
    compile_seconds: float


class PieceRow(Record):
    """A piece of weights that each run reads from a file.

    Fields
        name: name and line of the step that reads it
        read: seconds of reading it while nothing else runs
        predicted, measured: seconds that a run waits for it
    """

    name: str
    nbytes: int
    read: float | None = None
    predicted: float | None = None
    measured: float | None = None


class WeightFigures(Record):
    """Figures of weights that each run reads from disk.

    Fields
        path: the file
        ring: bytes of memory for them
        pieces: in the order of reading
        kernels: seconds of all steps, each run separately with its weights in memory
        predicted, measured: seconds of a whole run
    """

    path: str
    ring: int
    pieces: tuple[PieceRow, ...]
    kernels: float | None = None
    predicted: float | None = None
    measured: float | None = None

    @property
    def nbytes(self) -> int:
        """Bytes that each run reads."""
        return sum(piece.nbytes for piece in self.pieces)


class RingRow(Record):
    """A value inside a region: the most bytes of its rows in use at one time, and the bytes of the whole value."""

    name: str
    nbytes: int
    whole_nbytes: int


class RegionRow(Record):
    """Steps that run in bands of rows.

    Fields
        step: position in the schedule
        nbytes: bytes of its band buffer: rows and workspaces
        rings: the values that exist only in the band buffer, in running order
        bands, slides: number of each; slid_nbytes: bytes that slides copy
        seconds: predicted time of the calls beyond one per value
    """

    step: int
    name: str
    nbytes: int
    rings: tuple[RingRow, ...]
    bands: int
    slides: int
    slid_nbytes: int
    seconds: float

    @property
    def whole_nbytes(self) -> int:
        """Bytes of the values inside, if each were whole."""
        return sum(ring.whole_nbytes for ring in self.rings)


class Figures(Record):
    """The memory of a Function, and its uses.

    Fields
        steps: in running order
        peak, peak_nbytes: the first step with the most bytes in use, and those bytes
        alive: the values in use there, largest first
        nbytes: of the arena; `unshared_nbytes`: if every value had bytes of its own; `lower_bound`: of any plan
            of this schedule, whatever overwrites or is made in place; `plain_lower_bound`: if nothing does
        var_nbytes, const_nbytes: bytes outside the arena
        order, strategy: names of the schedule's order and of the plan's strategy; `proved`: no plan of this schedule is
            smaller
        kernels: None if only the plan exists
        inner: plans inside steps' workspaces, by the step's name and line: the bodies of loops
        on_host: steps that run on the host, with the bytes carried there and back
        weights: weights that each run reads from a file
        regions: steps that run in bands of rows
        precision: how each layer is computed, if `compile` got the option
    """

    steps: tuple[StepRow, ...]
    peak: int
    peak_nbytes: int
    alive: tuple[Alive, ...]
    nbytes: int
    unshared_nbytes: int
    lower_bound: int
    plain_lower_bound: int
    var_nbytes: int
    const_nbytes: int
    order: str
    strategy: str
    proved: bool
    kernels: Kernels | None
    inner: tuple[tuple[str, "Figures"], ...] = ()
    on_host: tuple[tuple[str, int], ...] = ()
    weights: WeightFigures | None = None
    regions: tuple[RegionRow, ...] = ()
    precision: MixedPrecision | None = None

    @property
    def ratio(self) -> float:
        """Plan size over lower bound; 1 if no bytes are needed."""
        return self.nbytes / self.lower_bound if self.lower_bound else 1.0

    @property
    def seconds(self) -> float | None:
        """The sum of the steps' times; None if they were not measured."""
        times = [row.seconds for row in self.steps if row.seconds is not None]
        return sum(times) if times else None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as numbers, texts, lists and dictionaries."""
        return vars(self) | {
            "steps": [vars(row) for row in self.steps],
            "alive": [vars(row) for row in self.alive],
            "kernels": vars(self.kernels) if self.kernels else None,
            "ratio": self.ratio,
            "seconds": self.seconds,
            "weights": vars(self.weights) | {"pieces": [vars(x) for x in self.weights.pieces]}
            if self.weights
            else None,
            "precision": self.precision.facts() if self.precision else None,
            "regions": [vars(x) | {"rings": [vars(ring) for ring in x.rings]} for x in self.regions],
            "inner": [[name, figures.as_dict()] for name, figures in self.inner],
        }

    def json(self) -> str:
        """Return the same as JSON text."""
        return json.dumps(self.as_dict(), indent=1)
