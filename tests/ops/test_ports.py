"""Streamed rows: specs of bands on both sides of a run, what a port has before a run, and which ports are one."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import NoMeaningError
from cgraph.ir.graph import apply
from cgraph.ir.spec import Spec
from cgraph.ops.physical.ports import RowPort, RowSink, RowSource

SPEC = Spec((2, 3, 8, 5), np.dtype("uint8"))


def test_a_band_of_a_source_has_its_rows_and_all_other_axes():
    source = RowSource("key", SPEC)
    cut = source.cut()
    band = cut.band(2, 7)
    assert source.infer() == SPEC and cut.reads == () and (cut.above, cut.below) == (0, 0)
    assert band.infer() == Spec((2, 3, 5, 5), SPEC.dtype) and band.port == "key"
    with pytest.raises(
        NoMeaningError, match="streamed rows have no value before a run; run the compiled function with"
    ):
        source.meaning()


def test_a_sink_reads_rows_one_for_one_and_is_an_array_of_no_images():
    sink = RowSink(RowPort("y", SPEC))
    cut = sink.cut(SPEC)
    ((first, stop),) = cut.reads
    assert list(first) == list(range(8)) and list(stop) == list(range(1, 9)) and cut.band(2, 7) is sink
    x = np.ones(SPEC.shape, SPEC.dtype)
    assert sink.infer(SPEC) == Spec((0, 3, 8, 5), SPEC.dtype) == Spec(sink.meaning(x).shape, sink.meaning(x).dtype)


def test_each_port_is_a_step_of_its_own_that_may_fail():
    one, other = RowSource("key", SPEC), RowSource("key", SPEC)
    assert apply(one) is not apply(other) and one != other and RowPort("y", SPEC) != RowPort("y", SPEC)
    x = cg.Var(SPEC.shape, SPEC.dtype, "x")
    assert apply(RowSink(RowPort("y", SPEC)), x) is not apply(RowSink(RowPort("y", SPEC)), x)
    for op in (one, RowSink(RowPort("y", SPEC))):
        assert op.can_fail and not op.pure
