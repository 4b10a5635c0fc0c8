"""Call builders of attention in bands of queries. A task is a sequence of bands with its own scratch."""

from cgraph.kernels.attention.few_signature import QUERIES
from cgraph.kernels.attention.gpu_signature import DEPTHS
from cgraph.kernels.attention.signature import BANDS, KEYS
from cgraph.kernels.kernel import Call, View, scratch_pointer
from cgraph.kernels.target import Target
from cgraph.kernels.views.conv_shape import sums
from cgraph.kernels.views.thread_blocks import in_blocks
from cgraph.late import LateModule
from cgraph.record import Record

gpu_attention = LateModule("cgraph.kernels.attention.gpu_calls")

MOST_TASKS = 32  # on a CPU: enough to balance bands of unequal lengths over the threads
MOST_VECTORS = 4
GPU_ROWS = 4
REST_ROWS = 6  # of a band of one vector beside others: with 12, addresses do not stay in registers
FEW = 4  # queries at most that share a head of keys, for the kernel with keys in the lanes
STATE = 4  # rows of the scratch besides queries, weights and result: maximum, sum, factor, position
WIDEST_WINDOW = 1 << 30  # keys; no query attends farther back


class BandShape(Record):
    """The decomposition of attention into tiles, bands and tasks.

    Fields
        rows, vectors: of the register tile, keys or columns of values by vectors of queries
        rest: rows of the tile of one vector that is enough for the last band; 0 if it is like the others
        width: queries of a band
        bands: of the queries that share a head of keys
        units: bands of all heads and batches
        each: units of a task
        size: elements of a task's scratch
    """

    rows: int
    vectors: int
    rest: int
    width: int
    bands: int
    units: int
    each: int
    size: int

    @property
    def tasks(self) -> int:
        return -(-self.units // self.each)


def band_shape(target: Target, dtype: str, q: tuple[int, ...], groups: int, e: int) -> BandShape:
    """Return the decomposition for queries ``[b, h, m, d]``, `groups` heads of keys and values of `e` columns."""
    batch, heads, m, d = q
    lanes, limit = target.lanes_of(dtype), sums(target)
    queries = heads // groups * m
    vectors, rest = vectors_of(target, queries, lanes)
    rows = GPU_ROWS if target.code == "ptx" else rows_of(vectors, limit)
    width = vectors * lanes
    bands = -(-queries // width)
    units = batch * groups * bands
    each = 1 if target.code == "ptx" else -(-units // MOST_TASKS)
    columns = max(width, min(queries, FEW))  # the kernel of few queries has them all in its scratch
    size = columns * (d + KEYS + rows + STATE + e + rows)
    return BandShape(rows, vectors, REST_ROWS if rest else 0, width, bands, units, each, size)


def rows_of(vectors: int, limit: int) -> int:
    """Return the rows of a tile of so many vectors and at most `limit` sums."""
    return next(r for r in (12, 6, 4) if r == 4 or r * vectors <= limit)


def vectors_of(target: Target, queries: int, lanes: int) -> tuple[int, bool]:
    """Return the vectors of a band, and whether the last band has a single one: as few lanes as possible are empty."""
    limit = sums(target)
    fits = [v for v in range(MOST_VECTORS, 1, -1) if v * 4 <= limit and (v - 1) * lanes < queries] or [1]
    if target.code == "ptx":
        return next(v for v in (MOST_VECTORS, 2, 1) if v == 1 or (v * 4 <= limit and v // 2 * lanes < queries)), False

    def lanes_of(v: int) -> float:
        rest = queries % (v * lanes)
        whole = queries - rest
        return whole + (1.25 * lanes if has_rest(v) else v * lanes if rest else 0)

    def has_rest(v: int) -> bool:
        return v > 1 and 0 < queries % (v * lanes) <= lanes

    vectors = min(fits, key=lanes_of)
    return vectors, has_rest(vectors)


class Rule(Record):
    """The keys that a query attends to, and the scaling of scores: the fields of `cgraph.ops.attention.Attention`."""

    scale: float
    causal: bool = False
    window: int = 0
    softcap: float = 0.0
    safe: bool = False

    @property
    def forms(self) -> tuple[bool, bool, bool]:
        """The parameter `rule` of kernels."""
        return self.causal, self.softcap > 0, self.safe


class AttentionViews(Record):
    """The operands of attention.

    Fields
        q, k, v: ``[b, h, m, d]``, ``[b, g, n, d]``, ``[b, g, n, e]`` of any strides
        mask: ``[b, h, m, n]`` or 1 along any axis, bool or of the dtype of `q`; None for no mask
        start: int64 ``[b]``, the position of the first query, or None for 0
    """

    q: View
    k: View
    v: View
    mask: View | None = None
    start: View | None = None


def attention_nbytes(target: Target, dtype: str, q: tuple[int, ...], groups: int, e: int) -> int:
    """Return the bytes of workspace that `attention_calls` needs for these sizes."""
    if target.has_blocks and max(q[3], e) <= DEPTHS[-1]:
        return 0
    shape = band_shape(target, dtype, q, groups, e)
    return shape.tasks * shape.size * int(dtype[1:])


def attention_calls(
    target: Target, out: View, operands: AttentionViews, rule: Rule, workspace: View | None
) -> list[Call]:
    """Compute ``softmax(q @ k.T * rule.scale, masked) @ v``; see `cgraph.ops.attention.Attention`.

    Operands
        out: ``[b, h, m, e]`` of any strides
        workspace: at least `attention_nbytes` bytes
    """
    q, k, v, mask, start = operands.q, operands.k, operands.v, operands.mask, operands.start
    batch, heads, m, d = q.shape
    groups, n, e = k.shape[1], k.shape[2], v.shape[3]
    shape = band_shape(target, q.dtype, q.shape, groups, e)
    nbytes = attention_nbytes(target, q.dtype, q.shape, groups, e)
    scratch = scratch_pointer(workspace, nbytes) if nbytes else out.at
    kind = "" if mask is None else "bool" if mask.dtype == "b1" else "added"
    hidden = steps("s", mask) if mask else dict.fromkeys(("s_batch", "s_head", "s_row", "s_step"), 0)
    spread = mask is not None and hidden["s_head"] == hidden["s_row"] == 0
    queries = heads // groups * m
    is_few = queries <= FEW and target.code != "ptx" and (k.strides[3], v.strides[3]) == (q.itemsize, q.itemsize)
    params = (
        (queries, kind, rule.forms) if is_few else (shape.rows, shape.vectors, shape.rest, kind, spread, rule.forms)
    )
    call = (QUERIES if is_few else BANDS).call(
        (q.dtype, *params), shape.tasks, 1,
        groups=groups, heads=heads, queries=queries, m=m, n=n, d=d, e=e,
        bands=shape.bands, units=shape.units, each=shape.each,
        scale=float(rule.scale), window=rule.window or WIDEST_WINDOW, cap=rule.softcap,
        q=q.at, k=k.at, v=v.at, out=out.at, masks=mask.at if mask else None,
        **steps("q", q), **steps("k", k), **steps("v", v), **steps("o", out), **hidden,
        start=start.at if start else None, start_step=start.strides[0] // start.itemsize if start else 0,
        scratch=scratch, scratch_size=shape.size,
    )  # fmt: skip
    return in_blocks(target, gpu_attention.attention_calls, call, batch) or [call]


def steps(letter: str, x: View) -> dict[str, int]:
    """Return the elements from one batch, head, row and column of `x` to the next; 0 along axes of one element."""
    names = (f"{letter}_batch", f"{letter}_head", f"{letter}_row", f"{letter}_step")
    return {name: stride // x.itemsize if n > 1 else 0 for name, n, stride in zip(names, x.shape, x.strides)}
