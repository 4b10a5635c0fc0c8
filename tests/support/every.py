"""A plugin of pytest: run one in EVERY of the selected tests, for machines on which all of them take hours.

``EVERY=20 python -m pytest -p tests.support.every``
"""

import os

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the first test of each group of EVERY."""
    items[:] = items[:: int(os.environ["EVERY"])]
