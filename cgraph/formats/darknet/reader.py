"""load: read a Darknet network as a graph."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from cgraph.errors import CgraphError, FormatError, ShapeError
from cgraph.formats.allowance import Allowance
from cgraph.formats.darknet import heads, recurrent  # noqa: F401 - both fill LAYERS
from cgraph.formats.darknet.config import Section, read_config
from cgraph.formats.darknet.layers import LAYERS, Net
from cgraph.formats.darknet.parameters import FreeParameters, Parameters, RandomParameters, StoredParameters
from cgraph.formats.model import Model
from cgraph.ir.graph import Node
from cgraph.ir.origin import keeps_origin, origin_at
from cgraph.ops.leaf import Var
from cgraph.system.byte_counts import byte_count

DRAWN = 1 << 30  # bytes
NODES = 20  # per layer, besides windows, steps and routes, which charge their own


def load(
    config: str | Path,
    weights: str | Path | None = None,
    *,
    batch: int = 1,
    seed: int | None = None,
    drawn: int | str = DRAWN,
) -> Model:
    """Read a network.

    Parameters
        config: the ``.cfg`` file
        weights: the ``.weights`` file, whose arrays stay memory-mapped
        batch: images in one run
        seed: without weights, draw parameters from this seed, for plans and timings; without either they are Vars
        drawn: bytes of parameters that may be drawn, a number or text such as ``"2GiB"``
    Returns
        a model of one input, ``[batch, c, h, w]`` or ``[steps * batch, inputs]``; its outputs are the results of the
        yolo, region and detection layers, or of the last layer if there are none
    Raises
        FormatError: a file is malformed, has unsupported layers, or the weights belong to another network
    """
    return read(config, source(weights, seed, drawn), batch)[0]


Source = Callable[[Allowance], Parameters]


def source(weights: str | Path | None, seed: int | None, drawn: int | str) -> Source:
    """Return the source of the parameters."""
    if weights is not None:
        return lambda allowance: StoredParameters(weights, allowance)
    return lambda _: FreeParameters() if seed is None else RandomParameters(seed, byte_count(drawn))


def read(config: str | Path, parameters: Source, batch: int) -> tuple[Model, Net]:
    """Return the model and its state under construction. FormatError as in `load`."""
    allowance = Allowance(0)
    options, *sections = read_config(config, allowance)
    check_supported(sections, config)
    net = Net(parameters(allowance), allowance, options.size("time_steps", 1))
    try:
        return build(options, sections, net, batch, Path(config).name), net
    except FormatError as error:
        raise FormatError(f"{config}: {error}") from None


def check_supported(sections: list[Section], config: str | Path) -> None:
    """Raise FormatError that names all unsupported kinds of layers."""
    missing = Counter(s.kind for s in sections if s.kind not in LAYERS)
    if missing:
        named = ", ".join(
            f"[{kind:.40}] ({n} times)" if n > 1 else f"[{kind:.40}]" for kind, n in sorted(missing.items())[:40]
        )
        raise FormatError(f"{config}: {len(missing)} kinds of layers are not supported: {named}")
    if not sections:
        raise FormatError(f"{config}: there are no layers. Add one after [net]")


@keeps_origin
def build(options: Section, sections: list[Section], net: Net, batch: int, file: str) -> Model:
    """Build the graph of all layers; `file` is the name of the description, for messages."""
    start = input_of(options, net.steps * batch)
    if start.ndim == 4:
        net.size = start.shape[2], start.shape[3]
    x: Node = start
    for s in sections:
        net.allowance.spend(f"layer {s.index}, [{s.kind}]", nodes=NODES)
        try:
            with origin_at(file, s.line, f"{s.index}.{s.kind}"):
                x = LAYERS[s.kind](net, s, x)
        except FormatError:
            raise
        except CgraphError as error:
            raise s.error(str(error)) from None
        net.results.append(x)
    net.parameters.finish()
    places = net.outputs or [len(sections) - 1]
    names = tuple(f"{i}.{sections[i].kind}" for i in places)
    values = {f"{s.index}.{s.kind}": node for s, node in zip(sections, net.results)}
    return Model((start,), tuple(net.results[i] for i in places), names, values, updates=net.updates)


def input_of(options: Section, rows: int) -> Var:
    """Return the input ``[rows, c, h, w]``, or ``[rows, inputs]`` for a network without images."""
    shape: tuple[int, ...]
    if "height" in options.options or "width" in options.options:
        shape = (rows, options.size("channels", 3), options.size("height"), options.size("width"))
    else:
        shape = (rows, options.size("inputs"))
    try:
        return Var(shape, "float32", "input")
    except ShapeError as error:
        raise options.error(str(error)) from None
