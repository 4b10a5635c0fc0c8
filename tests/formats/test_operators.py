"""The importers of ONNX operators by family: the table names what each module registers."""

from pathlib import Path

import pytest

from cgraph.formats.onnx import operators
from cgraph.formats.onnx.context import OPERATORS
from cgraph.formats.onnx.operators import FAMILIES, importer_of


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_registers_the_operators_that_the_table_names(family):
    module = f"cgraph.formats.onnx.operators.{family}"
    assert all(importer_of(name) for name in FAMILIES[family].split())
    registered = {name for name, importer in OPERATORS.items() if importer.__module__ == module}
    assert registered == set(FAMILIES[family].split())


def test_the_table_names_every_family():
    folder = Path(operators.__file__).parent
    families = {x.stem for x in folder.glob("*.py") if "@operator(" in x.read_text()}
    assert families == set(FAMILIES) and importer_of("NoSuchOperator") is None
