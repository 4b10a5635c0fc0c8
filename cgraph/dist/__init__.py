"""Several machines: functions over dask arrays, and the sums for training in several processes.

`map_batches` needs dask (extra `dist`), which is imported when it is called. Training is `nn.data_parallel`.
"""

from cgraph.dist.blocks import map_batches
from cgraph.dist.limits import Limits

__all__ = ["Limits", "map_batches"]


def __dir__() -> list[str]:
    return __all__
