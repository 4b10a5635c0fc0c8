"""Only the table of storage dtypes names them: a new row needs no other file."""

import ast
from collections.abc import Iterator

import pytest

from cgraph.dtypes import storage
from cgraph.dtypes.storage import BY_CODE, BY_NAME, StorageDtype
from tests.support.sources import sources_with

RECORDS = {name for name, value in vars(storage).items() if isinstance(value, StorageDtype)}
NAMES = RECORDS | {*BY_NAME}
FORMATS = ("cgraph/formats/", "nn/models/")  # dtypes that files declare, and the file that a tool writes
PRODUCTS = {  # of bfloat16, which an instruction multiplies
    *("cgraph/ops/physical/pairs.py", "cgraph/ops/physical/conv.py", "cgraph/kernels/pairs/calls.py"),
    *(
        "cgraph/ops/physical/tiled.py",
        "cgraph/ops/physical/tile_conv.py",
        "cgraph/ops/physical/tile_transposed.py",
        "cgraph/kernels/tile_conv/signature.py",
    ),
    *("cgraph/kernels/tile_attention/calls.py", "cgraph/kernels/tile_attention/emit.py"),
    *("cgraph/ops/physical/tile_filters.py", "cgraph/ops/physical/conv_transpose.py"),
    *("cgraph/kernels/pairs/paired_sides.py", "cgraph/kernels/tile_products/computed_sides.py"),
    "cgraph/kernels/tile_conv/filter_grad_calls.py",
    *("cgraph/kernels/isa/x86.py", "cgraph/kernels/isa/arm.py", "cgraph/kernels/llvm/instructions.py"),
}
ALLOWED = {"cgraph/dtypes/storage.py", "cgraph/cli/precisions.py", "cgraph/numpy/__init__.py", *PRODUCTS}


def names_in(tree: ast.Module) -> Iterator[str]:
    """The names, codes and records of storage dtypes in code, without docstrings and messages."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if text in BY_NAME or text in BY_CODE:
                yield text
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name) if name in NAMES:
                yield name


def test_no_other_file_names_a_storage_dtype():
    named = {path: sorted({*names_in(tree)}) for path, tree in sources_with({*NAMES, *BY_CODE})}
    named = {name: dtypes for name, dtypes in named.items() if dtypes and not name.startswith(FORMATS)}
    assert named.keys() == ALLOWED, named


@pytest.mark.parametrize(
    "code", ["x.dtype == 'bfloat16'", "np.float16", "code == 'V2'", "from x import FLOAT16", "BFLOAT16.code"]
)
def test_every_way_to_name_one_is_noticed(code):
    assert [*names_in(ast.parse(code))]


@pytest.mark.parametrize("code", ["'store bfloat16 numbers'", "np.float32", "'f4'", "half"])
def test_words_and_other_dtypes_are_allowed(code):
    assert not [*names_in(ast.parse(code))]
