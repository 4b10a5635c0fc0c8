"""The code that all processors of a cluster run: what each of them is, they say themselves."""

import time
from collections.abc import Iterable

from distributed import Client, Future

from cgraph.kernels.host import host
from cgraph.kernels.target import host_target, narrowest
from nn.parallel.coordinator import answer, wait_for_any

Kind = tuple[str, str]
"""The architecture of a processor, and the name of the widest target that it runs."""


def least_target(client: Client, seconds: float) -> str:
    """The widest target that runs here and on all workers of this architecture that are there and answer in time."""
    return least_of(own_kind(), kinds_of(client, seconds))


def least_of(own: Kind, others: Iterable[Kind]) -> str:
    """The name of the widest target of all that are of one's own architecture."""
    return narrowest([own[1], *(name for architecture, name in others if architecture == own[0])])


def own_kind() -> Kind:
    """Of this process's machine."""
    return host().triple.partition("-")[0], host_target().name


def kinds_of(client: Client, seconds: float) -> list[Kind]:
    """What the workers say that they are, those who do so in time."""
    options = {"allow_other_workers": False, "pure": False, "retries": 0}
    asked: dict[str, Future] = {x: client.submit(own_kind, workers=[x], **options) for x in there(client)}
    kinds, end = [], time.monotonic() + seconds
    while asked and time.monotonic() < end:
        wait_for_any(list(asked.values()))
        kinds += [answer(asked.pop(x)) for x in [*asked] if asked[x].done()]
        for x in asked.keys() - there(client):
            asked.pop(x).cancel()
    for future in asked.values():
        future.cancel()
    return [x for x in kinds if x is not None]


def there(client: Client) -> set[str]:
    return set(client.scheduler_info(n_workers=-1)["workers"])
