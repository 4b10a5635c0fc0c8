"""Call builders of attention on tile registers."""

from math import prod

from cgraph.dtypes.storage import BFLOAT16
from cgraph.kernels.attention.calls import MOST_TASKS, STATE, WIDEST_WINDOW, AttentionViews, Rule, steps
from cgraph.kernels.kernel import Call, Pointer, View, contiguous, split_scratch
from cgraph.kernels.move.calls import part
from cgraph.kernels.pairs.calls import padded_copy_calls, pair_calls
from cgraph.kernels.target import Target
from cgraph.kernels.tile_attention.signature import BANDS, BLOCK
from cgraph.kernels.tile_products.calls import config_of
from cgraph.kernels.tile_products.signature import COLUMNS, TILE_NBYTES
from cgraph.kernels.views.window_views import reorder_axes
from cgraph.record import Record
from cgraph.system.alignment import aligned, round_up

STEP = 32  # numbers of a row of a tile
FEW_QUERIES, FEW_NUMBERS = 16, 16  # that share a head of keys, and of a key, from which on tiles are used: estimates
NUMBER_NBYTES = BFLOAT16.dtype.itemsize
FLOAT_NBYTES = 4


class TileSizes(Record):
    """The sizes of attention on tiles.

    Fields
        batch, heads, groups, m, n, d, e: as of the operands: `groups` heads of keys
        lanes: of a vector
    """

    batch: int
    heads: int
    groups: int
    m: int
    n: int
    d: int
    e: int
    lanes: int

    @staticmethod
    def of(target: Target, q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...]) -> "TileSizes":
        """Return the sizes for shapes of queries, keys and values."""
        return TileSizes(q[0], q[1], k[1], q[2], k[2], q[3], v[3], target.lanes)

    @property
    def queries(self) -> int:
        """Queries that share a head of keys."""
        return self.heads // self.groups * self.m

    @property
    def width(self) -> int:
        """Queries of a band."""
        return 2 * STEP if self.queries > STEP else STEP

    @property
    def bands(self) -> int:
        return -(-self.queries // self.width)

    @property
    def units(self) -> int:
        return self.batch * self.groups * self.bands

    @property
    def each(self) -> int:
        """Units of a task."""
        return -(-self.units // MOST_TASKS)

    @property
    def tasks(self) -> int:
        return -(-self.units // self.each)

    @property
    def keys(self) -> tuple[int, ...]:
        """The shape of the rounded keys, with rows up to a whole tile and numbers up to a whole step."""
        return self.batch, self.groups, round_up(self.n, 2 * COLUMNS), round_up(self.d, STEP)

    @property
    def values(self) -> tuple[int, ...]:
        """The shape of the rounded values: a row for each column."""
        return self.batch, self.groups, round_up(self.e, 2 * COLUMNS), round_up(self.n, STEP)

    @property
    def size(self) -> int:
        """Elements of a task's scratch."""
        spare = 2 * COLUMNS
        rows = self.d + BLOCK + spare + STATE + self.e + spare
        packed = (self.keys[3] + BLOCK) // 2
        return self.width * (rows + packed) + 4 * TILE_NBYTES // FLOAT_NBYTES

    @property
    def rooms(self) -> tuple[int, int, int]:
        """Bytes of rounded keys, rounded values and the scratch of all tasks, which first has the values as rows."""
        keys, values = (NUMBER_NBYTES * prod(shape) for shape in (self.keys, self.values))
        rows = NUMBER_NBYTES * self.batch * self.groups * self.n * self.e
        return keys, values, max(self.tasks * self.size * FLOAT_NBYTES, rows)

    @property
    def nbytes(self) -> int:
        """Bytes of workspace."""
        return sum(map(aligned, self.rooms))


def suits_tile_attention(q: tuple[int, ...], k: tuple[int, ...]) -> bool:
    """Return True for shapes of queries and keys of which tiles are not mostly empty."""
    queries = q[1] // k[1] * q[2]
    return queries >= FEW_QUERIES and min(q[3], k[2]) >= FEW_NUMBERS


def tile_attention_calls(
    target: Target, out: View, operands: AttentionViews, rule: Rule, workspace: View | None
) -> list[Call]:
    """Compute attention as `attention_calls` does, of float32 operands that are rounded to bfloat16.

    Operands
        operands: without a start
        workspace: as many bytes as `TileSizes.nbytes` says
    """
    q, k, v, mask = operands.q, operands.k, operands.v, operands.mask
    sizes = TileSizes.of(target, q.shape, k.shape, v.shape)
    places = [x.at if x is not None else Pointer(None) for x in split_scratch(workspace, *sizes.rooms)]
    keys, values = (contiguous(at, shape, BFLOAT16.code) for at, shape in zip(places, (sizes.keys, sizes.values)))
    rows = contiguous(places[2], v.shape, BFLOAT16.code)
    before = [
        *pair_calls(target, part(keys, 2, 0, sizes.n), k),
        *pair_calls(target, rows, v),
        *padded_copy_calls(target, part(values, 2, 0, sizes.e), reorder_axes(rows, (0, 1, 3, 2))),
    ]
    kind = "" if mask is None else "bool" if mask.dtype == "b1" else "added"
    hidden = steps("s", mask) if mask else dict.fromkeys(("s_batch", "s_head", "s_row", "s_step"), 0)
    spread = mask is not None and hidden["s_head"] == hidden["s_row"] == 0
    call = BANDS.call(
        (q.dtype, sizes.width // sizes.lanes, kind, spread, rule.forms), sizes.tasks, 1,
        groups=sizes.groups, heads=sizes.heads, queries=sizes.queries, m=sizes.m, n=sizes.n, d=sizes.d, e=sizes.e,
        bands=sizes.bands, units=sizes.units, each=sizes.each,
        scale=float(rule.scale), window=rule.window or WIDEST_WINDOW, cap=rule.softcap,
        q=q.at, k=k.at, v=v.at, out=out.at, masks=mask.at if mask else None,
        **steps("q", q), **steps("k", k), **steps("v", v), **steps("o", out), **hidden,
        start=None, start_step=0, scratch=places[2], scratch_size=sizes.size,
        config=Pointer(config_of(COLUMNS)),
        keys=keys.at, key_head=keys.strides[1], key_row=keys.strides[2], depth=sizes.keys[3] // STEP,
        values=values.at, value_head=values.strides[1], value_row=values.strides[2],
    )  # fmt: skip
    return [*before, call]
