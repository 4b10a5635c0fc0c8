"""Small arrays would meet only one side of the rules that cut work by size: `cuts` runs a module on both."""

import pytest

from cgraph.kernels.conv import calls
from cgraph.kernels.gemm import matmul_calls
from cgraph.kernels.views import row_bands


@pytest.fixture(scope="module", params=["cut as chosen", "cut finely"])
def cuts(request):
    """Images in bands and blocks of few tiles, panels of columns outermost in products: what large arrays get."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "cut finely":
            patch.setattr(row_bands, "LEAST_PIXELS", 1)
            patch.setattr(calls, "NEAR_INPUT", 64)
            patch.setattr(matmul_calls, "NEAR", 0)
        yield
