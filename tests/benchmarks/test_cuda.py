"""The benchmark of the CUDA engine: whole on a simulated GPU, and a reason where there is no GPU."""

from functools import partial

import pytest

from benchmarks import cuda
from cgraph.engine.cuda.engine import SIMULATED, CudaEngine
from cgraph.errors import EngineError

SMALL = cuda.Sizes(
    rows=8, columns=32, products=(8,), batches=(), channels=(8,), image=(1, 5), kernels=4, turns=1, least=0.0
)


@pytest.mark.slow
def test_every_figure_can_be_taken():
    rows = list(cuda.Bench(partial(CudaEngine, SIMULATED), sizes=SMALL).rows())
    assert [unit for _, _, _, unit, _ in rows] == ["GB/s"] * 7 + ["TFLOP/s"] * 3 + ["ms"] * 3
    assert all(took > 0 and figure > 0 for _, took, figure, _, _ in rows)


def test_no_gpu_is_said(monkeypatch, capsys):
    def none():
        raise EngineError("there is no NVIDIA driver on this machine")

    monkeypatch.setattr(cuda, "describe_gpus", none)
    cuda.main()
    assert capsys.readouterr().out == "nothing is measured: there is no NVIDIA driver on this machine\n"
