"""The packages that architectures come from, loaded once for all exports."""

from contextlib import suppress
from importlib import import_module

from benchmarks.zoo.architectures import torchvision_without_ops

with suppress(ImportError):  # an export names the package that is not installed
    torchvision_without_ops()
    for name in ("torchvision", "timm", "transformers", "onnxscript"):
        import_module(name)
