"""The standard's ``fft``, lazy by `cgraph.numpy.fft`."""

from typing import Any

import numpy as np

import cgraph.numpy.fft as lazily
from cgraph.array_api.array import Array
from cgraph.array_api.calls import function
from cgraph.array_api.creation import array_of, check_device
from cgraph.array_api.functions import one_of_each

SIGNATURES = """
fft ifft rfft irfft hfft ihfft: x, /, *, n=None, axis=-1, norm='backward'
fftn ifftn rfftn irfftn: x, /, *, s=None, axes=None, norm='backward'
fftshift ifftshift: x, /, *, axes=None
"""
FUNCTIONS = {
    name: function(name, signature, getattr(lazily, name, None), getattr(np.fft, name))
    for name, signature in one_of_each(SIGNATURES).items()
}
globals().update(FUNCTIONS)
__all__ = [*FUNCTIONS, "fftfreq", "rfftfreq"]


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """Return the frequencies of a transform of n samples."""
    check_device(device)
    return array_of(np.fft.fftfreq(n, d).astype(dtype or np.float64))


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """Return the frequencies of a transform of n real samples."""
    check_device(device)
    return array_of(np.fft.rfftfreq(n, d).astype(dtype or np.float64))
