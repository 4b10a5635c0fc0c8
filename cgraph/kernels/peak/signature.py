"""Multiply-adds on registers alone."""

from cgraph.kernels.signature import Signature

# x: one vector for each sum, which take the results
MULTIPLY_ADD = Signature("peak.multiply_add", ("dtype",), {"x": "dtype*"})
ADD_PRODUCTS = Signature("peak.add_products", (), {"x": "i4*"})
