"""NumPy's functions on nodes, by NumPy's names and with its arguments, as types that checkers know.

``cgraph.numpy.vstack`` is the function that ``np.vstack`` calls for nodes; `cgraph.numpy.table` lists all of them.
Plain values become constants.
"""

from numpy import e as e
from numpy import euler_gamma as euler_gamma
from numpy import inf as inf
from numpy import nan as nan
from numpy import newaxis as newaxis
from numpy import pi as pi

from cgraph.numpy import emath as emath
from cgraph.numpy import fft as fft
from cgraph.numpy import linalg as linalg
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
