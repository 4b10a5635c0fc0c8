"""Signatures: both sides of a call name the same arguments, and what does not fit is refused by name."""

import inspect
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import cgraph.kernels as kernels
from cgraph.kernels.families import place_of, signature_of
from cgraph.kernels.signature import Signature, Words
from cgraph.kernels.target import host_target

FOLDER = Path(kernels.__path__[0])
MODULES = sorted(f"cgraph.kernels.{p.parent.name}.{p.stem}" for p in FOLDER.glob("*/*signature.py"))
FAMILIES = [found for name in MODULES for found in vars(import_module(name)).values() if isinstance(found, Signature)]
HOST = host_target()
every_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda x: x.family)


def emitter_of(family: Signature):
    module, name = place_of(family.family, "emit")
    return getattr(import_module(module), name)


@every_family
def test_a_signature_stands_where_its_family_says_and_names_the_emitters_params(family):
    assert signature_of(family.family) is family
    _, *params = inspect.signature(emitter_of(family)).parameters.values()
    if [x.kind for x in params] == [inspect.Parameter.VAR_POSITIONAL]:
        module = import_module(place_of(family.family, "emit")[0])
        assert module.Tile._fields == family.params
    else:
        assert tuple(x.name for x in params) == family.params
    assert not set(family.params) & set(family.args)


@every_family
def test_the_kinds_of_arguments_are_known_ones(family):
    kinds = [k for kind in family.args.values() for k in (kind.kinds if isinstance(kind, Words) else (kind,))]
    for kind in kinds:
        is_pointer = kind.endswith("*") and (kind[:-1] in family.params or np.dtype(kind[:-1]))
        assert is_pointer or kind in ("i8", "f8", "address", "address?"), kind


def test_every_emitter_that_reads_arguments_has_a_signature():
    """Emitters take a Builder and the params of a kernel; the interpreter and the reader have types of their own."""
    emitters = [path for path in FOLDER.rglob("*.py") if path.name != "compile.py"]  # whose docstring says k.args()
    reading = [path for path in emitters if "k.args()" in path.read_text()]
    assert reading
    assert all(path.with_name(path.name.replace("emit", "signature")).exists() for path in reading)
    by_hand = {path.parent.name for path in emitters if "function.args[0]" in path.read_text()}
    assert by_hand <= {"llvm", "interpret", "ring"}
