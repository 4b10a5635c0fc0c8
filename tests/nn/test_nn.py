"""The names of the package nn: each exists, is listed once, and is where the docs say."""

import pytest

import nn


def test_every_name_exists_and_is_listed_once():
    assert all(hasattr(nn, name) for name in nn.__all__)
    assert len(set(nn.__all__)) == len(nn.__all__)
    assert dir(nn) == sorted(nn.__all__)


def test_every_layer_is_a_name_of_the_package():
    assert set(nn.layers.__all__) <= set(nn.__all__)
    assert nn.Linear is nn.layers.Linear


def test_functions_and_modules_of_one_name_are_not_mixed_up():
    """`nn.compile` and others are functions whose files have the same names."""
    for name in ("compile", "quantise", "summary", "train"):
        assert callable(getattr(nn, name)), name


def test_a_missing_name_is_an_attribute_error_with_advice():
    with pytest.raises(AttributeError, match="nn has no attribute 'Dense'; use nn.Linear"):
        _ = nn.Dense
    with pytest.raises(AttributeError) as error:
        _ = nn.__signature__
    assert str(error.value) == "nn has no attribute '__signature__'"


def test_an_import_of_a_missing_name_fails():
    with pytest.raises(ImportError, match="Dense"):
        from nn import Dense  # noqa: F401
