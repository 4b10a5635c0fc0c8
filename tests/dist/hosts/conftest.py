"""One cluster on emulated hosts for the tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.dist.hosts.cluster import HostCluster, host_cluster, missing


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostCluster]:
    reason = missing()
    if reason:
        pytest.skip(reason)
    with host_cluster(tmp_path_factory.mktemp("hosts")) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def whole_links(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "cluster" in request.fixturenames:
        request.getfixturevalue("cluster").switch.mend()
