"""Checkpoints: a safetensors file with every array, and a JSON file that names it.

The arrays are written first, under a new name; the JSON file is then replaced atomically, and only then the old arrays
are removed. A process that is killed at any moment leaves the old checkpoint or the new one, complete.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cgraph import CgraphError, FormatError, InputError, Record
from cgraph.record import set_field
from cgraph.system.files import replace_file
from nn.checks import check_kind
from nn.files import remove_others
from nn.monitor import Monitor
from nn.weights import pack_arrays, read_arrays

VERSION = 1


class Checkpoint(Record):
    """Place and times of checkpoints; after every epoch if no time is passed.

    Fields
        path: path of the JSON file; the arrays are stored in the same folder
        steps: interval in steps; 0 for none
        epochs: interval in epochs, also fractions; 0 for none
        when: function of step and loss; True writes a checkpoint after the step
        best: name in ``History.by_epoch()``, such as "valid loss": a checkpoint is written after each epoch with the
            best figure so far, and at no other time. A resumed run continues from that epoch
        mode: of `best`: "min" when lower is better, "max" when higher is; needed for any metric other than a loss
    """

    path: str | Path
    steps: int = 0
    epochs: float = 0.0
    when: Callable[[int, float], bool] | None = None
    best: str | None = None
    mode: str | None = None

    def __post_init__(self) -> None:
        self.monitor()
        if self.best is not None and (self.steps or self.epochs or self.when is not None):
            raise InputError(
                f"best is {self.best!r:.60} and steps, epochs or when is set too. Pass only best=: it keeps one "
                "checkpoint, of the best epoch."
            )
        if self.best is None and self.when is None and not self.steps and not self.epochs:
            set_field(self, "epochs", 1.0)

    def monitor(self) -> Monitor | None:
        """Return the figure by which it compares epochs; None without `best`."""
        return None if self.best is None else Monitor(self.best, self.mode)

    def due(self, step: int, steps_per_epoch: int, loss: float) -> bool:
        """Return True if a checkpoint is due after `step` steps."""
        every = max(1, round(self.epochs * steps_per_epoch)) if self.epochs else 0
        regular = any(n and step % n == 0 for n in (self.steps, every))
        return regular or (self.when is not None and self.when(step, loss))


def write_checkpoint(path: str | Path, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
    """Replace the checkpoint at `path`.

    Parameters
        arrays: arrays by name
        facts: values that JSON can represent, by names other than "version", "arrays" and "sha256"
    Raises
        InputError: `arrays` is not a mapping, or `facts` has a name of the checkpoint's own
    """
    check_kind("arrays", arrays, Mapping, "a mapping of names to arrays")
    for own in ("version", "arrays", "sha256"):
        if own in facts:
            raise InputError(f"facts has {own!r}, which a checkpoint sets itself. Rename it.")
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    contents = pack_arrays(arrays)
    digest = hashlib.sha256(contents).hexdigest()
    own = path.name.removesuffix(".json")  # the stem of another ending may belong to another checkpoint
    name = f"{own}-{digest[:16]}.safetensors"
    replace_file(path.parent / name, [contents])
    text = json.dumps({"version": VERSION, "arrays": name, "sha256": digest, **facts}, indent=1)
    replace_file(path, [text.encode()])
    remove_others(path.parent, re.escape(own) + r"-[0-9a-f]{16}\.safetensors", keep=name)
    remove_others(path.parent, re.escape(path.name), keep=path.name)


def read_checkpoint(path: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
    """Return arrays and facts of the checkpoint at `path`, or None when there is none.

    Raises
        FormatError: the files are not a checkpoint, or the arrays were changed
    """
    path = Path(path)
    if not path.exists():
        return None
    from cgraph.formats.allowance import Allowance  # `import nn` loads no file format
    from cgraph.formats.json_text import parse_json

    try:
        raw = path.read_bytes()
        facts = parse_json(raw, Allowance(len(raw)), "its description")
        name, digest, version = facts["arrays"], facts["sha256"], facts["version"]
    except (CgraphError, KeyError, TypeError) as error:
        raise FormatError(f"{path} is not a checkpoint: {error}. Delete it, or pass another path.") from error
    if version != VERSION or not isinstance(name, str) or Path(name).name != name:
        raise FormatError(
            f"{path}: version {version!r:.40} or file name {name!r:.80} is not supported. Delete it, or pass another "
            "path."
        )
    arrays = path.parent / name
    try:
        digest_on_disk = hashlib.sha256(arrays.read_bytes()).hexdigest()
    except (OSError, ValueError):  # missing, or an impossible name
        digest_on_disk = None
    if digest_on_disk != digest or digest_on_disk is None:
        raise FormatError(
            f"{str(arrays)!r:.200} is not the file that {path.name} was written for. Restore it, or delete both."
        )
    return read_arrays(arrays), facts
