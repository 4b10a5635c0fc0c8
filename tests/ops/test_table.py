"""Byte tables: every byte by its place in the table, what is refused, what may be overwritten, bands of rows."""

import numpy as np
import pytest

from cgraph.errors import ShapeError
from cgraph.ir.graph import apply
from cgraph.ir.spec import Spec
from cgraph.kernels.target import host_target, target_named
from cgraph.ops.leaf import Var
from cgraph.ops.physical.table import BYTES, ByteTable
from tests.support.cuts import assert_bands
from tests.support.kernels import TARGETS
from tests.support.ops import kernel_result

TABLE = np.random.default_rng(1).permutation(256).astype("u1")


def spec(shape, dtype="u1"):
    return Spec(shape, np.dtype(dtype))


@pytest.mark.parametrize("name", TARGETS)
def test_every_byte_becomes_the_entry_at_its_place(name):
    x = np.arange(256, dtype="u1").reshape(2, 128)[::-1].copy()
    node = apply(ByteTable(), Var(x.shape, "u1"), Var((256,), "u1"))
    (got,) = kernel_result(node, [x, TABLE], "reverse", target=target_named(name))
    want = [[TABLE[b] for b in row] for row in x.tolist()]
    assert node.spec == spec((2, 128)) and got.tolist() == want == ByteTable().meaning(x, TABLE).tolist()


@pytest.mark.parametrize(
    ("x", "table"), [(spec((4,), "i1"), BYTES), (spec((4,)), spec((255,))), (spec((4,)), spec((256,), "i1"))]
)
def test_other_bytes_and_other_tables_are_refused(x, table):
    with pytest.raises(ShapeError, match=r"pass uint8\[256\] and bytes"):
        ByteTable().infer(x, table)


def test_the_result_may_overwrite_the_bytes_and_not_the_table():
    work = ByteTable().work(host_target(), spec((3, 5)), BYTES)
    assert work.overwrites == (0,) and work.nbytes == 0


def test_bands_read_their_rows_and_the_whole_table():
    op, x = ByteTable(), np.random.default_rng(2).integers(0, 256, (2, 1, 7, 3, 4)).astype("u1")
    assert op.cut(spec(x.shape), BYTES).reads[1] is None
    assert op.cut(spec((256,)), BYTES) is None
    assert_bands(op, [x, TABLE], (1, 3))
