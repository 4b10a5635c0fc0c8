"""The widest target that all processors of a cluster run; each worker reports its own."""

import time
from collections.abc import Iterable

from distributed import Client, Future

from cgraph.kernels.isa.architectures import architecture, host_architecture, narrowest
from cgraph.kernels.target import host_target
from nn.parallel.coordinator import answer, wait_for_any

Kind = tuple[str, str]
"""The architecture of a processor, and the name of the widest target that it runs."""


def least_target(client: Client, seconds: float) -> str:
    """Return the widest target that runs here and on all workers of this architecture that answer in time."""
    return least_of(own_kind(), kinds_of(client, seconds))


def least_of(own: Kind, others: Iterable[Kind]) -> str:
    """Return the name of the widest target that all processors of the own architecture run."""
    return narrowest(architecture(own[0]), [own[1], *(name for other, name in others if other == own[0])])


def own_kind() -> Kind:
    """Return the kind of this machine's processor."""
    return host_architecture().name, host_target().name


def kinds_of(client: Client, seconds: float) -> list[Kind]:
    """Return the kinds of the workers that answer in time."""
    options = {"allow_other_workers": False, "pure": False, "retries": 0}
    pending: dict[str, Future] = {x: client.submit(own_kind, workers=[x], **options) for x in present(client)}
    kinds, end = [], time.monotonic() + seconds
    while pending and time.monotonic() < end:
        wait_for_any(list(pending.values()))
        kinds += [answer(pending.pop(x)) for x in [*pending] if pending[x].done()]
        for x in pending.keys() - present(client):
            pending.pop(x).cancel()
    for future in pending.values():
        future.cancel()
    return [x for x in kinds if x is not None]


def present(client: Client) -> set[str]:
    """Return the addresses of the cluster's workers."""
    return set(client.scheduler_info(n_workers=-1)["workers"])
