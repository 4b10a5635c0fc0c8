"""The client's process: one training, with a fault at one place of one step. It writes the outcome as JSON.

The worker at that place orders the fault itself and continues when links are cut, so no time has to be guessed.
"""

import json
import sys
import time
from typing import Any

import nn
from cgraph.dist.limits import Limits
from tests.dist.clusters import digest, network, trained
from tests.dist.dying import at
from tests.dist.hosts.links import CutOrder, address_of
from tests.dist.hosts.page import client_code
from tests.support.patience import PATIENCE


def main(
    workers: int,
    epochs: int,
    host: int,
    step: int,
    cut: list | None,
    limits: dict,
    place: str,
    checkpoint: str,
    width: int,
) -> None:
    """Train on so many workers; the worker of a host orders the cut."""
    names: dict[str, Any] = {}
    exec(client_code(), names)
    with names["client"] as client:
        client.wait_for_workers(workers, timeout=PATIENCE)
        if cut is not None:
            one = [x for x in client.scheduler_info(n_workers=-1)["workers"] if f"{address_of(host)}:" in x]
            client.run(at, place, step, CutOrder(*cut), workers=one)
        model, began = network(width=width), time.monotonic()
        point = {"checkpoint": nn.Checkpoint(checkpoint, steps=1)} if checkpoint else {}
        history = trained(client, model, epochs=epochs, limits=Limits(**limits), **point)
        seconds = time.monotonic() - began
    outcome = {"loss": [float(x) for x in history.loss], "digest": digest(model), "seconds": seconds}
    sys.stdout.write(json.dumps(outcome))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
