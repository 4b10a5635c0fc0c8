"""NumPy's names for nodes and arrays: ``import cgraph.numpy as np`` replaces ``import numpy as np``.

``cgraph.numpy.vstack`` of nodes is what ``np.vstack`` calls for nodes; `cgraph.numpy.table` lists all functions. Calls
without nodes are NumPy's own, except in a traced function, where they give traced arrays. Type checkers see the
functions of nodes. Names that are not here are NumPy's.
"""

import typing

from numpy import bool as bool
from numpy import bool_ as bool_
from numpy import complex64 as complex64
from numpy import complex128 as complex128
from numpy import dtype as dtype
from numpy import e as e
from numpy import errstate as errstate
from numpy import euler_gamma as euler_gamma
from numpy import finfo as finfo
from numpy import float16 as float16
from numpy import float32 as float32
from numpy import float64 as float64
from numpy import iinfo as iinfo
from numpy import inf as inf
from numpy import int8 as int8
from numpy import int16 as int16
from numpy import int32 as int32
from numpy import int64 as int64
from numpy import intp as intp
from numpy import nan as nan
from numpy import ndarray as ndarray
from numpy import newaxis as newaxis
from numpy import pi as pi
from numpy import uint8 as uint8
from numpy import uint16 as uint16
from numpy import uint32 as uint32
from numpy import uint64 as uint64

from cgraph.numpy import emath as emath
from cgraph.numpy import fft as fft
from cgraph.numpy import linalg as linalg
from cgraph.numpy import plain as plain
from cgraph.numpy import random as random
from cgraph.numpy.bits import *
from cgraph.numpy.creation import *
from cgraph.numpy.direct import *
from cgraph.numpy.elementwise import *
from cgraph.numpy.inspection import *
from cgraph.numpy.joining import *
from cgraph.numpy.nans import *
from cgraph.numpy.polynomials import *
from cgraph.numpy.products import *
from cgraph.numpy.quantiles import *
from cgraph.numpy.reductions import *
from cgraph.numpy.selection import *
from cgraph.numpy.series import *
from cgraph.numpy.shapes import *
from cgraph.numpy.signals import *
from cgraph.numpy.statistics import *

if not typing.TYPE_CHECKING:
    import numpy as _numpy

    globals().update(plain.functions(globals(), _numpy))
    emath = plain.namespace(emath, _numpy.emath)
    fft = plain.namespace(fft, _numpy.fft)
    linalg = plain.namespace(linalg, _numpy.linalg)

    def __getattr__(name):
        return plain.attribute(name, _numpy, __name__, globals())
