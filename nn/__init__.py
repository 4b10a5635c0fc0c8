"""nn: networks on cgraph. A model is a frozen tree of layers; training is one compiled Function with update edges.

model = nn.models.lenet()
history = nn.train(model, nn.Loader((x, y)), epochs=2)
predict = nn.compile(model, batch=100)
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from nn import init, layers, losses, metrics, models, optim
from nn.batches import Batches
from nn.cache import Cache
from nn.callbacks import Epoch
from nn.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from nn.compile import Predictor, compile, freeze
from nn.dask_samples import DaskSamples
from nn.generate import Choice, Generator
from nn.history import History
from nn.layer import Layer, Parameter, Sample, initialise
from nn.layers import *  # noqa: F403
from nn.layers import __all__ as _layers
from nn.loader import Loader, SampleSource, random_shift, shifted
from nn.missing import missing_name as _missing_name
from nn.mode import Mode
from nn.optim import Optimiser
from nn.pictures import PictureFiles, picture_folder
from nn.quantise import QuantisedPredictor, quantise
from nn.step import Step, training_step
from nn.stopping import Below, Early
from nn.summary import summary
from nn.tensorboard import TensorBoard
from nn.torch_weights import load_torch
from nn.train import LossError, train
from nn.weights import load_weights, save_weights, set_values

if TYPE_CHECKING:
    from nn.parallel import data_parallel

__all__ = [
    "Batches",
    "Below",
    "Cache",
    "Checkpoint",
    "Choice",
    "DaskSamples",
    "Early",
    "Epoch",
    "Generator",
    "History",
    "Layer",
    "Loader",
    "LossError",
    "Mode",
    "Optimiser",
    "Parameter",
    "PictureFiles",
    "Predictor",
    "QuantisedPredictor",
    "Sample",
    "SampleSource",
    "Step",
    "TensorBoard",
    "compile",
    "data_parallel",
    "freeze",
    "init",
    "initialise",
    "layers",
    "load_torch",
    "load_weights",
    "losses",
    "metrics",
    "models",
    "optim",
    "picture_folder",
    "quantise",
    "random_shift",
    "read_checkpoint",
    "save_weights",
    "set_values",
    "shifted",
    "summary",
    "train",
    "training_step",
    "write_checkpoint",
    *_layers,
]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # for a type checker, the module would have every name

    def __getattr__(name: str) -> object:
        """Return `data_parallel`, whose modules take a quarter of this import. AttributeError for other names."""
        if name == "data_parallel":
            return _import_module("nn.parallel").data_parallel
        if name.startswith("__"):  # names that Python looks up in any module
            raise AttributeError(f"nn has no attribute {name!r}")
        members = {x.__name__.removeprefix("nn."): x.__all__ for x in (optim, losses, metrics, models)}
        raise _missing_name(name, __all__, members)
