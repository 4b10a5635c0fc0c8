"""Pytest plugin that hides AVX-512 from cgraph: ``pytest -p tests.support.avx2_only`` runs what a machine of AVX2 runs.

Processes that a test starts see the machine as it is.
"""

import pytest

from cgraph.kernels import host as hosts
from cgraph.record import replace

_detect = hosts.host.__wrapped__


def _without_avx512() -> hosts.Host:
    host = _detect()
    features = ",".join(x for x in host.features.split(",") if not x.startswith(("+avx512", "+avx10", "+amx")))
    return replace(host, cpu="haswell", features=features)


def pytest_configure(config: pytest.Config) -> None:
    hosts.linux_host = _without_avx512
