"""Functions of several results return NumPy's own named tuples, each result under its name."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.numpy import results
from tests.numpy.evaluated import values
from tests.support.tolerance import all_near

A = np.array([[4.0, 1.0], [1.0, 3.0]])


@pytest.mark.parametrize(("name", "kind", "fields"), [
    ("eig", results.EigResult, "eigenvalues eigenvectors"), ("eigh", results.EighResult, "eigenvalues eigenvectors"),
    ("qr", results.QRResult, "Q R"), ("slogdet", results.SlogdetResult, "sign logabsdet"),
    ("svd", results.SVDResult, "U S Vh"),
])  # fmt: skip
def test_results_have_numpys_type_and_names(name, kind, fields):
    found, wanted = (getattr(np.linalg, name)(x) for x in (cg.Const(A), A))
    assert type(found) is type(wanted) is kind and found._fields == tuple(fields.split())
    for field, got in zip(found._fields, values(list(found)), strict=True):
        assert np.shape(got) == np.shape(getattr(wanted, field))
        if name != "eig":  # whose values may have another order
            assert all_near(np.abs(got), np.abs(getattr(wanted, field))), field
