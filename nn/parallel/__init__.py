"""Training over several machines. Users call `nn.data_parallel`."""

from nn.parallel.train import data_parallel

__all__ = ["data_parallel"]
