"""The client's process: for each line of options one training, whose outcome it writes as a line of JSON.

The worker at a place of a step orders the fault itself and continues when it has happened, so no time has to be
guessed.
"""

import json
import sys
import time
import warnings
from typing import Any

import nn
from cgraph.dist.limits import Limits
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.errors import CgraphError
from nn.parallel import sharded_step
from nn.parallel.sharded_step import LEAST_ELEMENTS
from tests.dist.clusters import digest, loader, network, trained
from tests.dist.dying import at
from tests.dist.hosts.links import Order, address_of
from tests.dist.hosts.page import client_code
from tests.support.patience import PATIENCE


def outcome(line: str) -> dict[str, Any]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            names: dict[str, Any] = {}
            exec(client_code(), names)
            with names["client"] as client:
                answer = train(client, **json.loads(line))
        except (CgraphError, OSError) as error:
            answer = {"error": type(error).__name__, "text": str(error)}
    return {**answer, "warnings": [str(x.message) for x in caught]}


def train(
    client: Any,
    workers: int = 3,
    epochs: float = 3,
    order: list | None = None,
    where: tuple = ("before_the_sum", 5, 0),
    width: int = 16,
    checkpoint: str = "",
    **options: Any,
) -> dict[str, Any]:
    """Train with `workers` workers.

    Parameters
        order: to the switch: its path, the action and the arguments
        where: the place and the step at which the order is given, and the number of the host that gives it
        width: of the network
        checkpoint: path of one that is written after each step
        options: limits and target as JSON has them; True as `factory` for workers that compile
    """
    client.wait_for_workers(workers, timeout=PATIENCE)
    if order is not None:
        place, step, host = where
        one = [x for x in client.scheduler_info(n_workers=-1)["workers"] if f"{address_of(host)}:" in x]
        client.run(at, place, step, Order(*order), workers=one)
    more: dict[str, Any] = {"limits": Limits(**options.get("limits", {}))}
    if checkpoint:
        more["checkpoint"] = nn.Checkpoint(checkpoint, steps=1)
    if "target" in options:
        more["engine"] = CpuEngine(options["target"])
    model, began = network(width=width), time.monotonic()
    is_factory = options.get("factory", False)
    sharded_step.LEAST_ELEMENTS = 1 if not is_factory else LEAST_ELEMENTS  # small networks have several pieces, too
    history = trained(client, network if is_factory else model, loader(), epochs=epochs, **more)
    seconds = time.monotonic() - began
    weights = "" if is_factory else digest(model)
    return {"loss": [float(x) for x in history.loss], "digest": weights, "seconds": seconds}


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(json.dumps(outcome(line)) + "\n")
        sys.stdout.flush()
