"""A plugin of pytest: run one in EVERY of the selected tests, for machines on which all of them take hours.

``EVERY=20 START=3 python -m pytest -p tests.support.every``: the tests 3, 23, 43 and so on, so that 20 calls run all.
"""

import os

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep one test of each group of EVERY: the first, or that with the number START."""
    items[:] = items[int(os.environ.get("START", "0")) :: int(os.environ["EVERY"])]
