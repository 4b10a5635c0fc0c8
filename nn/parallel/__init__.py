"""Training over several machines; `nn.data_parallel` is what users call."""

from nn.parallel.train import data_parallel

__all__ = ["data_parallel"]
