"""Settings for every test: the same examples on every run, and no deadline on a shared machine."""

import gc

from hypothesis import HealthCheck, settings

settings.register_profile(
    "cgraph", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("cgraph")
gc.disable()  # until the tests are collected: a million objects that all stay


def pytest_collection_finish():
    leave_out()
    gc.enable()


def pytest_runtest_teardown(item, nextitem):
    if nextitem is not None and nextitem.path != item.path:
        leave_out()


def leave_out() -> None:
    """Leave what is there, the collected tests above all, out of later collections of garbage, which would take
    seconds each.
    """
    gc.collect()
    gc.freeze()
